#include "communicator/gate.h"

#include <utility>

namespace muster::communicator {

Gate::Pass::~Pass() {
  if (gate_ != nullptr) gate_->leave();
}

Gate::Pass::Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}

Result<Gate::Pass> Gate::enter() {
  const std::lock_guard lock(mutex_);
  if (reason_) return *reason_;
  ++inside_count_;
  return Pass(*this);
}

bool Gate::close(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (reason_) return false;
  reason_ = why;
  is_closed_.store(true, std::memory_order_release);
  return true;
}

std::optional<Error> Gate::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

bool Gate::wait_empty(Duration limit) {
  std::unique_lock lock(mutex_);
  return left_.wait_for(lock, limit, [this] { return inside_count_ == 0; });
}

void Gate::leave() {
  const std::lock_guard lock(mutex_);
  if (--inside_count_ == 0) left_.notify_all();
}

}  // namespace muster::communicator
