#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/forked.h"
#include "base/host_pid.h"
#include "base/monotonic_now.h"
#include "base/random.h"

using namespace muster;

namespace {

/// What a forked child says its process id is, and what a second call there says.
std::array<ProcessId, 2> ids_of_child() {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::array<ProcessId, 2> ids = {base::own_process_id(), base::own_process_id()};
    const bool written = ::write(ends[1], &ids, sizeof(ids)) == ssize_t{sizeof(ids)};
    ::_exit(written ? 0 : 1);
  }
  REQUIRE(child > 0);
  ::close(ends[1]);
  std::array<ProcessId, 2> ids;
  CHECK(::read(ends[0], &ids, sizeof(ids)) == ssize_t{sizeof(ids)});
  ::close(ends[0]);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return ids;
}

}  // namespace

TEST_CASE("a process has the pid that its host calls it by, if that was told to it alone") {
  const std::string own = std::to_string(::getpid());
  const auto told = [](const std::string& text) {
    ::setenv("MUSTER_HOST_PID", text.c_str(), 1);
    const std::uint32_t pid = base::host_pid();
    ::unsetenv("MUSTER_HOST_PID");
    return pid;
  };
  const auto pid = static_cast<std::uint32_t>(::getpid());
  CHECK(base::host_pid() == pid);
  CHECK(told(own + ":12345") == 12345);
  CHECK(told("1" + own + ":12345") == pid);  // inherited
  for (const char* const wrong : {"", ":", ":1", "x", "12345", "-1:5"}) CHECK(told(wrong) == pid);
  for (const char* const wrong : {"", ":", ":x", ":0", ":-1", ":12x", ":99999999999"})
    CHECK(told(own + wrong) == pid);
}

TEST_CASE("a process keeps its id and all its threads agree on it") {
  std::vector<ProcessId> ids(8);
  std::vector<std::thread> threads;
  for (ProcessId& id : ids) threads.emplace_back([&id] { id = base::own_process_id(); });
  for (std::thread& thread : threads) thread.join();
  for (const ProcessId& id : ids) CHECK(id == base::own_process_id());
  CHECK(base::own_process_id() != ProcessId{});
}

TEST_CASE("a forked child has an id of its own and the parent keeps its one") {
  const ProcessId parent = base::own_process_id();
  const auto first = ids_of_child();
  const auto second = ids_of_child();
  CHECK(first[0] == first[1]);
  CHECK(first[0] != parent);
  CHECK(second[0] != parent);
  CHECK(second[0] != first[0]);
  CHECK(base::own_process_id() == parent);
}

TEST_CASE("the own process is told with host, pid and a label that is cut to 64 bytes") {
  const ProcessInfo process = base::own_process(std::string(100, 'x'));
  CHECK(process.id == base::own_process_id());
  CHECK(process.pid == static_cast<std::uint32_t>(::getpid()));
  CHECK(process.host.size() <= 64);
  CHECK(process.label == std::string(64, 'x'));
}

TEST_CASE("random numbers differ and fill every byte that was asked for") {
  std::set<std::uint64_t> numbers;
  for (int count = 0; count < 1000; ++count) numbers.insert(base::random_u64().value());
  CHECK(numbers.size() == 1000);

  std::array<unsigned char, 300> seen{};
  for (int turn = 0; turn < 20; ++turn) {
    std::array<unsigned char, 300> bytes{};
    REQUIRE(base::fill_random(bytes.data(), bytes.size()));
    for (std::size_t index = 0; index < bytes.size(); ++index) seen[index] |= bytes[index];
  }
  for (const unsigned char byte : seen) CHECK(byte != 0);
  CHECK(base::fill_random(nullptr, 0));
}

TEST_CASE("the monotonic clock never runs backwards") {
  base::Instant last = base::monotonic_now();
  CHECK(last > base::Instant{});
  for (int count = 0; count < 1000; ++count) {
    const base::Instant now = base::monotonic_now();
    CHECK(now >= last);
    last = now;
  }
}

TEST_CASE("a deadline is clamped to thirty days and never overflows") {
  const base::Instant now{std::chrono::seconds(10)};
  CHECK(base::deadline_after(now, Duration(-5)) == now);
  CHECK(base::deadline_after(now, std::chrono::seconds(5)) == now + std::chrono::seconds(5));
  CHECK(base::deadline_after(now, Duration::max()) == now + base::timeout_max);
}

TEST_CASE("an owner knows its process from every child, and a child of that its own owner") {
  const base::Owner owner;
  CHECK_FALSE(owner.is_forked());
  const pid_t child = ::fork();
  if (child == 0) {
    const base::Owner own;
    bool is_right = owner.is_forked() && !own.is_forked();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(owner.is_forked() && own.is_forked() ? 0 : 1);
    int status = -1;
    is_right = is_right && ::waitpid(grandchild, &status, 0) == grandchild && status == 0;
    ::_exit(is_right && !own.is_forked() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK_FALSE(owner.is_forked());
}
