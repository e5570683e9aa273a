// Clients of the library that go on with their work while others attack the server.
//
//     hostile_bystanders HOST:PORT WORK
//
// WORK is `barriers` (four ranks that pass barriers, exchange objects and set keys), `newcomers`
// (one store after the other connects, forms a group and closes), `resumes` (two ranks whose
// connections break) or `status` (what the server tells of itself). For each line of the standard
// input, a number of milliseconds, the work is done for so long; then a line of JSON tells how long
// everything took, in microseconds, and what failed.

#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <climits>

#include "faults/report.h"
#include "muster/codec_raw.h"
#include "muster/process_group.h"
#include "muster/store.h"

namespace muster::hostile {
namespace {

using nlohmann::json;
using Group = StatelessProcessGroup;
using Time = std::chrono::steady_clock;

constexpr int ranks_count = 4;
constexpr std::chrono::milliseconds barrier_interval{4};
constexpr int barriers_per_exchange = 8;
constexpr std::chrono::milliseconds newcomer_interval{10};
constexpr std::chrono::milliseconds break_interval{100};
constexpr std::chrono::seconds call_timeout{20};

std::int64_t microseconds(Time::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

/// What a work tells: its times by name, and its failures.
class Record {
 public:
  void time(const char* name, Time::duration took) {
    const std::lock_guard lock(mutex_);
    line_[name].push_back(microseconds(took));
  }
  template <class T>
  bool succeeded(const char* what, const Result<T>& result) {
    if (result.has_value()) return true;
    const std::lock_guard lock(mutex_);
    json failure = faults::described(result.error());
    failure["what"] = what;
    line_["failures"].push_back(std::move(failure));
    return false;
  }
  void keep(const char* name, json value) { line_[name] = std::move(value); }
  json take() { return std::exchange(line_, json{{"failures", json::array()}}); }

 private:
  std::mutex mutex_;
  json line_{{"failures", json::array()}};
};

/// Lets one go at its time, never sooner after the one before than the interval.
class Pace {
 public:
  explicit Pace(Time::duration interval) : interval_(interval), next_(Time::now()) {}
  void wait() {
    std::unique_lock lock(mutex_);
    never_.wait_until(lock, next_, [] { return false; });
    next_ = std::max(next_ + interval_, Time::now());
  }

 private:
  Time::duration interval_;
  Time::time_point next_;
  std::mutex mutex_;
  std::condition_variable never_;
};

class Work {
 public:
  virtual ~Work() = default;
  virtual void run(Record& record, Time::duration length) = 0;
};

/// The store, or the end of the process with the reason.
Store connected(const std::string& address, const char* label) {
  StoreOptions options;
  options.label = label;
  auto store = Store::connect(address, options, call_timeout);
  if (!store) {
    std::cerr << store.error().message() << '\n';
    std::_Exit(1);
  }
  return *std::move(store);
}

Result<Group> join(const Store& store, const std::string& name, int rank, int world_size) {
  GroupOptions options;
  options.timeout = call_timeout;
  return Group::create(store, name, rank, world_size, options);
}

/// Ranks of one group, each on a thread of its own.
class Barriers : public Work {
 public:
  explicit Barriers(const std::string& address) {
    for (int rank = 0; rank < ranks_count; ++rank) {
      stores_.push_back(connected(address, "bystander"));
    }
    std::vector<std::thread> threads;
    groups_.resize(ranks_count);
    for (int rank = 0; rank < ranks_count; ++rank) {
      threads.emplace_back([this, rank] {
        const auto place = static_cast<std::size_t>(rank);
        auto group = join(stores_[place], "bystanders", rank, ranks_count);
        if (group) groups_[place] = std::make_unique<Group>(*std::move(group));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& group : groups_) {
      if (group == nullptr) std::_Exit(1);
    }
  }

  void run(Record& record, Time::duration length) override {
    const auto until = Time::now() + length;
    last_ = INT_MAX;
    std::vector<std::vector<Times>> times(ranks_count);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks_count; ++rank) {
      threads.emplace_back(
          [&, rank] { pass_barriers(record, rank, until, times[static_cast<std::size_t>(rank)]); });
    }
    for (std::thread& thread : threads) thread.join();
    tell(record, times);
  }

 private:
  struct Times {
    Time::time_point began;
    Time::time_point ended;
  };

  /// Rank 0 says before it calls a barrier that it is the last one; who has left that knows it.
  void pass_barriers(Record& record, int rank, Time::time_point until, std::vector<Times>& times) {
    Group& group = *groups_[static_cast<std::size_t>(rank)];
    Pace pace(barrier_interval);
    for (int count = 0; count <= last_; ++count) {
      pace.wait();
      if (rank == 0 && Time::now() > until) last_ = count;
      const auto began = Time::now();
      const auto passed = group.barrier(call_timeout);
      times.push_back({began, Time::now()});
      if (!record.succeeded("barrier", passed)) return;
      if (count % barriers_per_exchange == 0 && !exchange(record, group)) return;
    }
  }

  static bool exchange(Record& record, Group& group) {
    const Rank next((group.rank() + 1) % ranks_count);
    const Rank before((group.rank() + ranks_count - 1) % ranks_count);
    return record.succeeded("all_gather",
                            group.all_gather_bytes("value", RawCodec::id, call_timeout)) &&
           record.succeeded("send",
                            group.send_bytes(next, RawCodec::id, "object", Tag(), call_timeout)) &&
           record.succeeded("recv", group.recv_bytes(before, RawCodec::id, Tag(), call_timeout)) &&
           record.succeeded("set", group.store().set("bystander" + std::to_string(group.rank()),
                                                     "value", {}, call_timeout));
  }

  /// A barrier takes from when the last rank has called it until the last one has left it.
  static void tell(Record& record, const std::vector<std::vector<Times>>& times) {
    for (std::size_t round = 0; round < times.front().size(); ++round) {
      Times all{};
      for (const auto& of_rank : times) {
        if (round >= of_rank.size()) return;
        all.began = std::max(all.began, of_rank[round].began);
        all.ended = std::max(all.ended, of_rank[round].ended);
      }
      record.time("barrier", all.ended - all.began);
    }
  }

  std::vector<Store> stores_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::atomic<int> last_ = INT_MAX;  ///< barrier
};

/// Stores that connect, one after the other.
class Newcomers : public Work {
 public:
  explicit Newcomers(std::string address) : address_(std::move(address)) {}

  void run(Record& record, Time::duration length) override {
    const auto until = Time::now() + length;
    Pace pace(newcomer_interval);
    while (Time::now() < until) {
      pace.wait();
      const auto began = Time::now();
      auto store = Store::connect(address_, {}, call_timeout);
      record.time("connect", Time::now() - began);
      if (!record.succeeded("connect", store)) continue;
      const auto joins = Time::now();
      const auto group = join(*store, "newcomer" + std::to_string(++count_), 0, 1);
      record.time("join", Time::now() - joins);
      record.succeeded("join", group);
      record.succeeded("set", store->set("newcomer", "value", {}, call_timeout));
    }
  }

 private:
  std::string address_;
  int count_ = 0;
};

/// The sockets of this process that are connected to the port.
std::vector<int> sockets_to(std::uint16_t port) {
  std::vector<int> sockets;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* const entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) {
      sockets.push_back(fd);
    }
  }
  ::closedir(folder);
  return sockets;
}

/// Two ranks of which one loses its connection, again and again. A barrier of both, behind that,
/// succeeds when the session was there.
class Resumes : public Work {
 public:
  explicit Resumes(const std::string& address)
      : port_(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)))) {
    stores_.push_back(connected(address, "resumes"));
    stores_.push_back(connected(address, "resumes"));
    auto first = std::async(std::launch::async, [&] { return join(stores_[0], "resumes", 0, 2); });
    auto second = join(stores_[1], "resumes", 1, 2);
    auto other = first.get();
    if (!other || !second) std::_Exit(1);
    groups_.push_back(*std::move(other));
    groups_.push_back(*std::move(second));
  }

  void run(Record& record, Time::duration length) override {
    const auto until = Time::now() + length;
    Pace pace(break_interval);
    while (Time::now() < until) {
      pace.wait();
      const std::vector<int> sockets = sockets_to(port_);
      if (sockets.empty()) continue;
      const auto began = Time::now();
      ::shutdown(sockets[dice_() % sockets.size()], SHUT_RDWR);
      auto first = std::async(std::launch::async, [&] { return groups_[0].barrier(call_timeout); });
      const auto second = groups_[1].barrier(call_timeout);
      const auto other = first.get();
      record.time("resume", Time::now() - began);
      const bool both = record.succeeded("resume", other);
      if (!record.succeeded("resume", second) || !both) return;
    }
  }

 private:
  std::uint16_t port_;
  std::vector<Store> stores_;
  std::vector<Group> groups_;
  std::minstd_rand dice_;
};

/// Numbers that the server tells of itself.
class StatusOfServer : public Work {
 public:
  explicit StatusOfServer(const std::string& address) : store_(connected(address, "status")) {}

  void run(Record& record, Time::duration) override {
    const auto status = store_.status(call_timeout);
    if (!record.succeeded("status", status)) return;
    json line;
    for (const auto& [name, value] : *status) line[name] = value;
    record.keep("status", std::move(line));
  }

 private:
  Store store_;
};

std::unique_ptr<Work> make(const std::string& address, std::string_view work) {
  if (work == "barriers") return std::make_unique<Barriers>(address);
  if (work == "newcomers") return std::make_unique<Newcomers>(address);
  if (work == "resumes") return std::make_unique<Resumes>(address);
  if (work == "status") return std::make_unique<StatusOfServer>(address);
  return nullptr;
}

int run(const std::string& address, std::string_view name) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto work = make(address, name);
  if (work == nullptr) return 2;
  faults::say({{"event", "ready"}});
  for (std::string line; std::getline(std::cin, line);) {
    Record record;
    work->run(record, std::chrono::milliseconds(std::stoi(line)));
    json told = record.take();
    told["event"] = "did";
    faults::say(std::move(told));
  }
  std::_Exit(0);  // nobody waits for goodbyes
}

}  // namespace
}  // namespace muster::hostile

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return muster::hostile::run(argv[1], argv[2]);
}
