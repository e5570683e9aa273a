#include "nccl/device_locks.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "client/failure.h"
#include "client/interruption.h"

namespace muster::nccl_internal {
namespace {

constexpr std::chrono::milliseconds gate_poll_interval{5};

/// Lives as long as the calling thread.
const std::shared_ptr<const int>& own_mark() {
  thread_local const auto mark = std::make_shared<const int>(0);
  return mark;
}

bool has_implicit_order() {
  const char* const order = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  return order != nullptr && std::string_view(order) == "1";
}

}  // namespace

DeviceLocks::Lock::~Lock() {
  if (locks_ != nullptr) locks_->release(device_);
}

DeviceLocks::Lock::Lock(Lock&& other) noexcept
    : locks_(std::exchange(other.locks_, nullptr)), device_(other.device_) {}

Result<DeviceLocks::Lock> DeviceLocks::acquire(int device, Role role, Clock::time_point until,
                                               const communicator::Gate& gate) {
  const auto self = std::this_thread::get_id();
  const std::thread::id nobody;
  std::unique_lock lock(mutex_);
  Queue& queue = queues_[device];
  if (role == Role::issuer && queue.issuer.expired()) queue.issuer = own_mark();
  if (role == Role::issuer && queue.issuer.lock() != own_mark() && !has_implicit_order()) {
    return client::failure(ErrorCode::would_deadlock,
                           "another thread issues to device " + std::to_string(device) +
                               "; let one thread do it, or let it call nccl::release_issuer, or "
                               "set NCCL_LAUNCH_ORDER_IMPLICIT=1");
  }
  const auto is_free = [&] {
    if (queue.holder == self) return true;
    return queue.holder == nobody && (role != Role::onlooker || queue.waiting_count == 0);
  };
  client::Interruption interruption;
  while (!is_free()) {
    const auto now = Clock::now();
    if (now >= until) {
      return client::failure(ErrorCode::timed_out, "another thread is in a call on device " +
                                                       std::to_string(device) + " still");
    }
    if (interruption.is_there()) return client::Interruption::error();
    ++queue.waiting_count;
    released_.wait_until(lock, std::min<Clock::time_point>(until, now + gate_poll_interval));
    --queue.waiting_count;
    if (gate.is_closed()) break;
  }
  if (gate.is_closed()) return *gate.reason();  // its handle may be gone
  queue.holder = self;
  ++queue.depth;
  return Lock(*this, device);
}

Result<void> DeviceLocks::release_issuer(int device) {
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_[device];
  if (queue.holder == std::this_thread::get_id()) {
    return client::invalid_argument("inside a call on device " + std::to_string(device));
  }
  const auto issuer = queue.issuer.lock();
  if (issuer != nullptr && issuer != own_mark()) {
    return client::failure(ErrorCode::would_deadlock, "another thread issues to device " +
                                                          std::to_string(device) +
                                                          "; it is the one to hand that over");
  }
  queue.issuer.reset();
  return {};
}

void DeviceLocks::release(int device) {
  {
    const std::lock_guard lock(mutex_);
    Queue& queue = queues_[device];
    if (--queue.depth > 0) return;
    queue.holder = std::thread::id();
  }
  released_.notify_all();
}

}  // namespace muster::nccl_internal
