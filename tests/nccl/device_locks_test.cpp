#include "nccl/device_locks.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "client/failure.h"
#include "muster/interruptible.h"
#include "support/await.h"
#include "support/server.h"

// Which thread may call NCCL for a device.

namespace muster::nccl_internal {
namespace {

using namespace std::chrono_literals;
using Clock = DeviceLocks::Clock;
using Role = DeviceLocks::Role;
using communicator::Gate;

/// In another thread, which has ended when this returns.
template <class Function>
auto elsewhere(const Function& function) {
  return std::async(std::launch::async, function).get();
}

ErrorCode refused(DeviceLocks& locks, int device, Role role, Duration limit, const Gate& gate) {
  const auto lock = locks.acquire(device, role, Clock::now() + limit, gate);
  return lock ? ErrorCode::internal : lock.error().code;
}

TEST_CASE("a thread that waits for a device sees that its gate was closed") {
  DeviceLocks locks;
  const Gate open;
  Gate gate;
  const auto held = test::must(locks.acquire(0, Role::anyone, Clock::now(), open));
  auto waiting =
      std::async(std::launch::async, [&] { return refused(locks, 0, Role::anyone, 60s, gate); });
  test::let_pass(20ms);  // so that it waits
  gate.close(client::failure(ErrorCode::rank_lost, ""));
  CHECK(waiting.wait_for(30s) == std::future_status::ready);
  CHECK(waiting.get() == ErrorCode::rank_lost);
}

TEST_CASE("a thread that waits for a device can be interrupted, and takes nothing") {
  DeviceLocks locks;
  const Gate open;
  const auto is_asked = [](void* asked) noexcept {
    return static_cast<std::atomic<bool>*>(asked)->load();
  };
  std::atomic<bool> is_interrupted = false;
  {
    const auto held = test::must(locks.acquire(0, Role::anyone, Clock::now(), open));
    auto waiting = std::async(std::launch::async, [&] {
      const Interruptible interruptible(is_asked, &is_interrupted, 5ms);
      return refused(locks, 0, Role::anyone, 60s, open);
    });
    CHECK(waiting.wait_for(50ms) == std::future_status::timeout);  // nobody has asked yet
    is_interrupted = true;
    CHECK(waiting.wait_for(30s) == std::future_status::ready);
    CHECK(waiting.get() == ErrorCode::cancelled);
  }
  CHECK(
      elsewhere([&] { return locks.acquire(0, Role::onlooker, Clock::now(), open).has_value(); }));
}

TEST_CASE("a free device is not locked for a communicator whose gate is closed") {
  DeviceLocks locks;
  Gate gate;
  gate.close(client::failure(ErrorCode::aborted, ""));
  CHECK(refused(locks, 0, Role::anyone, 1s, gate) == ErrorCode::aborted);
  const Gate open;
  CHECK(elsewhere([&] { return locks.acquire(0, Role::anyone, Clock::now(), open).has_value(); }));
}

TEST_CASE("one thread holds a device at a time, as often as it likes, and gives all back") {
  DeviceLocks locks;
  const Gate open;
  const auto is_free = [&](int device) {
    return elsewhere(
        [&] { return refused(locks, device, Role::anyone, 0ms, open) != ErrorCode::timed_out; });
  };
  {
    std::optional outer(test::must(locks.acquire(0, Role::anyone, Clock::now(), open)));
    {
      const auto inner = test::must(locks.acquire(0, Role::anyone, Clock::now(), open));
      CHECK_FALSE(is_free(0));
    }
    CHECK_FALSE(is_free(0));
    CHECK(is_free(1));
  }
  CHECK(is_free(0));
}

TEST_CASE("a thread that waits for a device gets it when it is given back") {
  DeviceLocks locks;
  const Gate open;
  std::optional held(test::must(locks.acquire(0, Role::anyone, Clock::now(), open)));
  auto waiting = std::async(std::launch::async, [&] {
    return locks.acquire(0, Role::anyone, Clock::now() + 60s, open).has_value();
  });
  test::let_pass(20ms);
  held.reset();
  CHECK(waiting.get());
}

/// Whether the kernel says that the thread of this process sleeps.
bool is_asleep(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(stat, line);
  const auto end_of_name = line.rfind(')');
  return end_of_name != line.npos && line.substr(end_of_name, 3) == ") S";
}

/// Holds up the thread that gets the signal until somebody writes to the pipe.
int hold_up_pipe[2];
std::atomic<bool> is_held_up{false};
void hold_up(int) {
  is_held_up = true;
  char byte = 0;
  [[maybe_unused]] const auto count = ::read(hold_up_pipe[0], &byte, 1);
}

TEST_CASE("who only looks leaves the device to those who wait for it") {
  REQUIRE(::pipe(hold_up_pipe) == 0);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = hold_up;
  REQUIRE(::sigaction(SIGUSR1, &action, &before) == 0);
  DeviceLocks locks;
  const Gate open;
  std::optional held(test::must(locks.acquire(0, Role::anyone, Clock::now(), open)));
  std::promise<void> looked;
  bool has_got_it = false;
  std::atomic<pid_t> id{0};
  std::thread waiter([&] {
    id = ::gettid();
    const auto lock = locks.acquire(0, Role::anyone, Clock::now() + 60s, open);
    looked.get_future().wait();
    has_got_it = lock.has_value();
  });
  test::await([&] { return id != 0 && is_asleep(id); });
  ::pthread_kill(waiter.native_handle(), SIGUSR1);
  test::await([] { return is_held_up.load(); });
  held.reset();  // it waits still, and nobody has the device
  CHECK(refused(locks, 0, Role::onlooker, 0ms, open) == ErrorCode::timed_out);
  REQUIRE(::write(hold_up_pipe[1], "", 1) == 1);
  looked.set_value();
  waiter.join();
  CHECK(has_got_it);
  ::sigaction(SIGUSR1, &before, nullptr);
  for (const int end : hold_up_pipe) ::close(end);
}

TEST_CASE("a second thread may not issue to a device while the first one lives") {
  DeviceLocks locks;
  const Gate open;
  CHECK(elsewhere([&] { return locks.acquire(0, Role::issuer, Clock::now(), open).has_value(); }));
  CHECK(locks.acquire(0, Role::issuer, Clock::now(), open));  // the first one has ended
  const auto issue = [&] { return refused(locks, 0, Role::issuer, 1s, open); };
  CHECK(elsewhere(issue) == ErrorCode::would_deadlock);
  CHECK(elsewhere([&] { return locks.acquire(0, Role::anyone, Clock::now(), open).has_value(); }));
  CHECK(elsewhere([&] { return locks.acquire(1, Role::issuer, Clock::now(), open).has_value(); }));
}

}  // namespace
}  // namespace muster::nccl_internal
