#include "nccl/device_locks.h"

#include <future>
#include <optional>
#include <thread>

#include <doctest/doctest.h>

#include "client/failure.h"
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
