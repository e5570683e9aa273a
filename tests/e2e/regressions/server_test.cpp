// The defects of earlier systems of this kind, of a server in a process of its own, and of one that
// waits for it: 7, and the second halves of 8 and 10.

#include <signal.h>
#include <sys/resource.h>

#include <fstream>

#include "e2e/server/musterd.h"
#include "support/ranks.h"
#include "support/raw_client.h"

namespace muster::test {
namespace {

/// A number of kB from /proc/PID/status, in bytes.
std::uint64_t status_bytes(pid_t pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  }
  FAIL("there is no ", name);
  return 0;
}

/// The lowest descriptor that is free in the process.
rlim_t free_descriptor_of(pid_t pid) {
  rlim_t lowest = 0;
  while (std::filesystem::exists(std::filesystem::symlink_status(
      "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(lowest)))) {
    ++lowest;
  }
  return lowest;
}

bool is_served(const std::string& address) {
  return RawClient::with_session(address).call(wire::Add{"counter", 1}).header.code == 0;
}

/// A frame of ours that says it is a `set` of so many bytes.
std::string header_of_set(std::uint32_t body_bytes) {
  wire::FrameHeader header;
  header.type = wire::FrameType::request;
  header.code = static_cast<std::uint16_t>(wire::operation<wire::Set>);
  header.id = 1;
  header.body_bytes = body_bytes;
  std::string bytes;
  wire::begin_frame(bytes, header);
  return bytes;
}

}  // namespace

TEST_CASE("defect 7: clients that stall in mid-frame freeze nobody else") {
  const Musterd musterd({"--log-level", "silent"});
  std::vector<RawClient> stalled;
  std::vector<std::string> rests;
  for (const std::size_t cut : {1U, 9U, 15U, 16U, 17U, 30U}) {  // within the header, and behind it
    stalled.push_back(RawClient::with_session(musterd.address()));
    const std::string bytes = stalled.back().request(wire::Add{"stalled", 1});
    REQUIRE(cut < bytes.size());
    stalled.back().send(std::string_view(bytes).substr(0, cut));
    rests.push_back(bytes.substr(cut));
  }
  auto store = connect(musterd.address());
  for (int i = 0; i < 100; ++i) must(store.set("key", std::to_string(i)));
  CHECK(must(store.get("key")) == "99");
  for (std::size_t index = 0; index < stalled.size(); ++index) {
    stalled[index].send(rests[index]);
    CHECK(stalled[index].receive_frame().header.code == 0);
  }
  CHECK(must(store.add("stalled", 0)) == 6);
}

TEST_CASE("defect 7: a hostile header that asks for 2 GiB is given nothing") {
  const Musterd musterd(
      {"--log-level", "silent", "--value-bytes-max", "1GiB", "--memory-bytes-max", "64GiB"});
  auto store = connect(musterd.address());
  must(store.set("key", "value"));
  const std::uint64_t before = status_bytes(musterd.pid(), "VmPeak");
  const std::string of_others("\x00\x00\x00\x00\x80\x00\x00\x00\x00", 9);  // an operation, 2 GiB
  const std::pair<std::string, ErrorCode> hostile[] = {
      {of_others, ErrorCode::protocol_error},
      {header_of_set(1U << 31), ErrorCode::too_large},
      {header_of_set(UINT32_MAX), ErrorCode::too_large},
  };
  for (const auto& [header, code] : hostile) {
    RawClient newcomer(musterd.address());
    newcomer.send(header);
    newcomer.finish_sending();
    CHECK(newcomer.is_closed());
    auto member = RawClient::with_session(musterd.address());
    member.send(header + std::string(16, '\0'));
    CHECK(member.receive_last_word().code == code);
    CHECK(member.is_closed());
  }
  // Each is allowed; of what it declares only so much comes that it is stored. It comes together
  // with a request, so that the server has seen it once that is answered.
  std::vector<RawClient> declaring;
  for (int count = 0; count < 20; ++count) {
    declaring.push_back(RawClient::with_session(musterd.address()));
    RawClient& client = declaring.back();
    client.send(client.request(wire::Add{"counter", 1}) + header_of_set(1U << 30) +
                std::string(4096, 'x'));
    CHECK(client.receive_frame().header.code == 0);
  }
  CHECK(must(store.get("key")) == "value");
  CHECK(status_bytes(musterd.pid(), "VmPeak") - before < (256U << 20));
}

TEST_CASE("defect 7: out of descriptors it sends newcomers away, serves its members and recovers") {
  Musterd musterd({"--log-level", "silent"});
  auto member = RawClient::with_session(musterd.address());
  rlimit before{};
  REQUIRE(::prlimit(musterd.pid(), RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit scarce{free_descriptor_of(musterd.pid()), before.rlim_max};
  REQUIRE(::prlimit(musterd.pid(), RLIMIT_NOFILE, &scarce, nullptr) == 0);
  for (int count = 0; count < 5; ++count) {
    RawClient newcomer(musterd.address());
    const wire::ServerHello answer = newcomer.receive_hello();
    CHECK(answer.status == number_of(ErrorCode::busy));
    CHECK(newcomer.is_closed());
    CHECK(member.call(wire::Add{"counter", 1}).header.code == 0);
  }
  RawClient patient(musterd.address());
  REQUIRE(::prlimit(musterd.pid(), RLIMIT_NOFILE, &before, nullptr) == 0);
  CHECK(is_served(musterd.address()));
}

TEST_CASE("defect 8: a process that waits in a call is ended by Ctrl-C at once") {
  const Musterd musterd({});
  auto observer = connect(musterd.address());
  Process::Options options;
  options.command = {std::getenv("MUSTERCTL"), "--timeout", "600", "wait", "never"};
  options.environment = {{"MUSTER_SERVER", musterd.address()}};
  Process waiting(options);
  await([&] { return held_count(observer, "waits") == 1; });
  waiting.send_signal(SIGINT);
  CHECK(waiting.wait().signal == SIGINT);  // nobody else handles signals in its process
  await([&] { return held_count(observer, "waits") == 0; });
}

TEST_CASE("defect 10: a set to a server that has ended does not succeed") {
  Musterd musterd({});
  auto store = connect(musterd.address());
  must(store.set("key", "value"));
  musterd.send_signal(SIGKILL);
  musterd.wait();
  for (int count = 0; count < 3; ++count) {
    const Error error = must_fail(store.set("key", "lost", {}, 200ms));
    const bool is_told =
        error.code == ErrorCode::unavailable || error.code == ErrorCode::outcome_unknown;
    CHECK(is_told);
  }
}

TEST_CASE("defect 10: a set to a server that stands still does not succeed before it goes on") {
  Musterd musterd({});
  auto store = connect(musterd.address());
  must(store.set("key", "old"));
  musterd.stop();
  const Error error = must_fail(store.set("key", "new", {}, 200ms));
  CHECK(error.code == ErrorCode::outcome_unknown);
  musterd.send_signal(SIGCONT);
  CHECK_FALSE(must(store.get("key")).empty());
}

}  // namespace muster::test
