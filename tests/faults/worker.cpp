// One rank of the fault matrix: does what it is told and reports every outcome.
//
//     fault_worker          reads one command a line from its standard input, until it ends
//
// A command is a JSON object: `call` names it, `id` is repeated in what is reported, `timeout_ms`
// is its timeout, other fields are its arguments. Each runs on a thread of its own, so that a call
// that waits holds up no other. Reported are lines of JSON: when a call begins, how it ended, and
// what the store and the group tell by themselves. The monotonic time is in all of them.

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "faults/report.h"
#include "muster/codec_raw.h"
#include "muster/process_group.h"
#include "muster/store.h"

namespace muster::faults {
namespace {

using nlohmann::json;
using Group = StatelessProcessGroup;

class Worker {
 public:
  /// Runs the command and reports how it ended.
  void run(const json& command);

 private:
  using Call = json (Worker::*)(const json& command, Duration timeout);
  static const std::map<std::string, Call> calls;

  json connect(const json& command, Duration timeout);
  json listen(const json& command, Duration timeout);
  json create(const json& command, Duration timeout);
  json join(const json& command, Duration timeout);
  json barrier(const json& command, Duration timeout);
  json barriers(const json& command, Duration timeout);
  json all_gather(const json& command, Duration timeout);
  json all_gathers(const json& command, Duration timeout);
  json recv(const json& command, Duration timeout);
  json send(const json& command, Duration timeout);
  json regroup(const json& command, Duration timeout);
  json recover(const json& command, Duration timeout);
  json leave(const json& command, Duration timeout);
  json set(const json& command, Duration timeout);
  json get(const json& command, Duration timeout);
  json add(const json& command, Duration timeout);
  json adds(const json& command, Duration timeout);
  json append(const json& command, Duration timeout);
  json remove(const json& command, Duration timeout);
  json fill(const json& command, Duration timeout);
  json empty(const json& command, Duration timeout);
  json report_dead(const json& command, Duration timeout);
  json reopen(const json& command, Duration timeout);
  json close(const json& command, Duration timeout);
  json status(const json& command, Duration timeout);
  json fork_child(const json& command, Duration timeout);

  std::shared_ptr<Store> store();
  std::shared_ptr<Group> group();
  json keep(Result<Group> group);

  std::mutex mutex_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<Group> group_;
  int listening_socket_ = -1;
};

const std::map<std::string, Worker::Call> Worker::calls = {
    {"connect", &Worker::connect},
    {"listen", &Worker::listen},
    {"create", &Worker::create},
    {"join", &Worker::join},
    {"barrier", &Worker::barrier},
    {"barriers", &Worker::barriers},
    {"all_gather", &Worker::all_gather},
    {"all_gathers", &Worker::all_gathers},
    {"recv", &Worker::recv},
    {"send", &Worker::send},
    {"regroup", &Worker::regroup},
    {"recover", &Worker::recover},
    {"leave", &Worker::leave},
    {"set", &Worker::set},
    {"get", &Worker::get},
    {"add", &Worker::add},
    {"adds", &Worker::adds},
    {"append", &Worker::append},
    {"remove", &Worker::remove},
    {"fill", &Worker::fill},
    {"empty", &Worker::empty},
    {"report_dead", &Worker::report_dead},
    {"reopen", &Worker::reopen},
    {"close", &Worker::close},
    {"status", &Worker::status},
    {"fork", &Worker::fork_child},
};

/// How a call ended; `more` is told of a value.
template <class T, class More>
json outcome(const Result<T>& result, const More& more) {
  if (!result.has_value()) return described(result.error());
  json line{{"code", "ok"}};
  if constexpr (std::is_void_v<T>) {
    more(line);
  } else {
    more(line, *result);
  }
  return line;
}

template <class T>
json outcome(const Result<T>& result) {
  if constexpr (std::is_void_v<T>) {
    return outcome(result, [](json&) {});
  } else {
    return outcome(result, [](json&, const T&) {});
  }
}

/// So many calls in a row, and how long each took.
template <class Call>
json timed(const json& command, const Call& call) {
  json took_us = json::array();
  for (int count = command.at("count"); count > 0; --count) {
    const auto began = std::chrono::steady_clock::now();
    const auto result = call();
    if (!result.has_value()) return described(result.error());
    const auto took = std::chrono::steady_clock::now() - began;
    took_us.push_back(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  }
  return {{"code", "ok"}, {"took_us", std::move(took_us)}};
}

std::uint32_t codec_of(const json& command) { return command.value("codec", RawCodec::id); }

std::function<void(const Error&)> teller(const char* event) {
  return [event](const Error& error) {
    json line = described(error);
    line["event"] = event;
    say(std::move(line));
  };
}

StoreOptions store_options(const json& command) {
  StoreOptions options;
  options.role = Role::supervisor;
  options.label = command.value("label", "");
  options.on_session_end = teller("session_end");
  return options;
}

std::shared_ptr<Store> Worker::store() {
  const std::lock_guard lock(mutex_);
  if (store_ || !group_) return store_;
  return {group_, &group_->store()};  // of a group by host and port
}

std::shared_ptr<Group> Worker::group() {
  const std::lock_guard lock(mutex_);
  return group_;
}

json Worker::keep(Result<Group> made) {
  return outcome(made, [&](json& line, const Group& as_made) {
    line["rank"] = as_made.rank();
    line["world_size"] = as_made.world_size();
    line["epoch"] = as_made.epoch();
    auto kept = std::make_shared<Group>(*std::move(made));
    const std::lock_guard lock(mutex_);
    group_.swap(kept);
  });
}

json Worker::connect(const json& command, Duration timeout) {
  auto made =
      Store::connect(command.at("address").get<std::string>(), store_options(command), timeout);
  if (!made) return described(made.error());
  json line{{"code", "ok"}, {"incarnation", made->incarnation()}};
  line.update(described(made->process()));
  const std::lock_guard lock(mutex_);
  store_ = std::make_shared<Store>(*std::move(made));
  return line;
}

/// Opens the socket of an embedded server.
json Worker::listen(const json&, Duration) {
  listening_socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  auto* const generic = reinterpret_cast<sockaddr*>(&own);
  // Else nobody could serve at this address for a minute after this process has died.
  const int yes = 1;
  ::setsockopt(listening_socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listening_socket_, generic, size) != 0 || ::listen(listening_socket_, 128) != 0 ||
      ::getsockname(listening_socket_, generic, &size) != 0) {
    return {{"code", "internal"}, {"message", "cannot listen"}};
  }
  return {{"code", "ok"}, {"port", ntohs(own.sin_port)}};
}

/// Forms a group by host and port: rank 0 serves on the socket that it has opened.
json Worker::create(const json& command, Duration timeout) {
  HostedGroupOptions options;
  options.store = store_options(command);
  options.on_loss = teller("loss");
  options.on_leave = teller("loss");
  options.name = command.value("group", "g");
  const int rank = command.at("rank");
  if (rank == 0) options.listening_socket = std::exchange(listening_socket_, -1);
  auto made = Group::create("127.0.0.1", command.at("port"), rank, command.at("size"),
                            std::chrono::seconds(3600),
                            std::chrono::ceil<std::chrono::seconds>(timeout), options);
  json line = keep(std::move(made));
  if (auto kept = group()) line.update(described(kept->store().process()));
  return line;
}

json Worker::join(const json& command, Duration timeout) {
  GroupOptions options;
  options.timeout = timeout;
  options.standby = command.value("standby", false);
  options.data_expiration = std::chrono::milliseconds(command.value("expiration_ms", 3'600'000));
  options.on_loss = teller("loss");
  options.on_leave = teller("loss");
  return keep(Group::create(*store(), command.value("group", "g"), command.at("rank"),
                            command.at("size"), options));
}

json Worker::barrier(const json&, Duration timeout) {
  return outcome(group()->barrier(timeout), [](json& line, const BarrierResult& result) {
    line["unconfirmed"] = result.unconfirmed.size();
  });
}

json Worker::barriers(const json& command, Duration timeout) {
  const auto held = group();
  return timed(command, [&] { return held->barrier(timeout); });
}

json Worker::all_gather(const json& command, Duration timeout) {
  const std::string value = command.value("value", "");
  return outcome(group()->all_gather_bytes(value, RawCodec::id, timeout),
                 [](json& line, const auto& values) { line["values"] = values; });
}

json Worker::all_gathers(const json& command, Duration timeout) {
  const auto held = group();
  return timed(command, [&] { return held->all_gather_bytes("value", RawCodec::id, timeout); });
}

json Worker::recv(const json& command, Duration timeout) {
  return outcome(
      group()->recv_bytes(Rank(command.at("source").get<int>()), codec_of(command), Tag(), timeout),
      [](json& line, const ReceivedBytes& received) {
        line["value"] = received.bytes;
        line["sequence"] = received.sequence;
      });
}

json Worker::send(const json& command, Duration timeout) {
  const std::string value = command.value("value", "");
  return outcome(group()->send_bytes(Rank(command.at("destination").get<int>()), codec_of(command),
                                     value, Tag(), timeout));
}

json Worker::regroup(const json& command, Duration timeout) {
  RegroupOptions options;
  options.new_size = command.value("new_size", 0);
  return keep(group()->regroup(options, timeout));
}

json Worker::recover(const json&, Duration timeout) {
  return outcome(group()->recover(timeout), [](json& line, const RecoveredRound& recovered) {
    line["round"] = recovered.round;
    line["called"] = recovered.called;
    if (recovered.error) line["error"] = described(*recovered.error);
    line["values"] = recovered.values;
  });
}

json Worker::leave(const json&, Duration timeout) { return outcome(group()->leave(timeout)); }

json Worker::set(const json& command, Duration timeout) {
  const std::string value(command.value("value_bytes", std::size_t{1}), 'x');
  SetOptions options;
  options.bind_to_session = command.value("bind", false);
  if (command.contains("ttl_ms")) options.ttl = std::chrono::milliseconds(command.at("ttl_ms"));
  return outcome(store()->set(command.at("key").get<std::string>(), value, options, timeout));
}

json Worker::get(const json& command, Duration timeout) {
  return outcome(store()->get(command.at("key").get<std::string>(), timeout),
                 [](json& line, const std::string& value) {
                   line["value"] = value.substr(0, 64);
                   line["value_bytes"] = value.size();
                 });
}

json Worker::add(const json& command, Duration timeout) {
  return outcome(store()->add(command.at("key").get<std::string>(), 1, timeout),
                 [](json& line, std::int64_t number) { line["number"] = number; });
}

json Worker::adds(const json& command, Duration timeout) {
  const auto held = store();
  return timed(command,
               [&] { return held->add(command.at("key").get<std::string>(), 1, timeout); });
}

json Worker::append(const json& command, Duration timeout) {
  const std::string suffix = command.value("value", "");
  return outcome(store()->append(command.at("key").get<std::string>(), suffix, timeout));
}

json Worker::remove(const json& command, Duration timeout) {
  return outcome(store()->remove(command.at("key").get<std::string>(), timeout));
}

/// Sets "big0", "big1", ... until one is refused.
json Worker::fill(const json& command, Duration timeout) {
  const auto held = store();
  const std::string value(command.at("value_bytes"), 'x');
  for (int count = 0; count < command.at("count"); ++count) {
    const auto set = held->set("big" + std::to_string(count), value, {}, timeout);
    if (set.has_value()) continue;
    json line = described(set.error());
    line["taken"] = count;
    return line;
  }
  return {{"code", "ok"}};
}

/// Removes what `fill` has set.
json Worker::empty(const json& command, Duration timeout) {
  const auto held = store();
  for (int count = 0; count < command.at("count"); ++count) {
    const auto removed = held->remove("big" + std::to_string(count), timeout);
    if (!removed.has_value()) return described(removed.error());
  }
  return {{"code", "ok"}};
}

json Worker::report_dead(const json& command, Duration timeout) {
  const std::string digits = command.at("process");
  ProcessId id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    id.bytes[i] = static_cast<std::uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
  }
  return outcome(store()->report_dead(id, "by the fault matrix", timeout));
}

json Worker::reopen(const json&, Duration timeout) { return outcome(store()->reopen(timeout)); }

json Worker::close(const json&, Duration) {
  if (const auto held = store()) held->close();
  return {{"code", "ok"}};
}

json Worker::status(const json&, Duration timeout) {
  return outcome(store()->status(timeout), [](json& line, const auto& pairs) {
    for (const auto& [name, value] : pairs) line["status"][name] = value;
  });
}

/// A child that holds what it has inherited, after it has seen what a call gives there.
json Worker::fork_child(const json&, Duration) {
  const auto held = store();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {{"code", "internal"}, {"message", "no pipe"}};
  const pid_t child = ::fork();
  if (child == 0) {
    const auto got = held->get("k", Duration(0));
    const ErrorCode code = got ? ErrorCode::internal : got.error().code;
    if (::write(ends[1], &code, sizeof code) != sizeof code) ::_exit(1);
    for (;;) ::pause();
  }
  ErrorCode code = ErrorCode::internal;
  ::close(ends[1]);
  const bool has_said = ::read(ends[0], &code, sizeof code) == sizeof code;
  ::close(ends[0]);
  return {{"code", has_said ? "ok" : "internal"}, {"child", child}, {"in_child", name_of(code)}};
}

void Worker::run(const json& command) {
  const json id = command.at("id");
  const auto call = calls.find(command.at("call"));
  say({{"id", id}, {"event", "begin"}});
  json line;
  if (call == calls.end()) {
    line = {{"code", "internal"}, {"message", "no such command"}};
  } else {
    const std::chrono::milliseconds timeout(command.value("timeout_ms", 60'000));
    line = (this->*call->second)(command, timeout);
  }
  line["id"] = id;
  line["event"] = "end";
  say(std::move(line));
}

int run_worker() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Worker worker;
  say({{"event", "started"}, {"pid", ::getpid()}});
  for (std::string line; std::getline(std::cin, line);) {
    json command = json::parse(line, nullptr, false);
    if (command.is_discarded()) return 2;
    std::thread([&worker, command = std::move(command)] { worker.run(command); }).detach();
  }
  std::_Exit(0);  // some calls may still wait
}

}  // namespace
}  // namespace muster::faults

int main() { return muster::faults::run_worker(); }
