#include "nccl/turns.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "client/failure.h"

namespace muster::nccl {
namespace {

constexpr std::chrono::milliseconds between_looks_at_turns{5};

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

Turns::Turn::~Turn() {
  if (turns_ != nullptr) turns_->give_back(device_);
}

Turns::Turn::Turn(Turn&& other) noexcept
    : turns_(std::exchange(other.turns_, nullptr)), device_(other.device_) {}

Result<Turns::Turn> Turns::take(int device, Taker taker, Clock::time_point until,
                                const communicator::Gate& gate) {
  const auto self = std::this_thread::get_id();
  const std::thread::id nobody;
  std::unique_lock lock(mutex_);
  Line& line = lines_[device];
  if (taker == Taker::issuer && line.issuer.expired()) line.issuer = own_mark();
  if (taker == Taker::issuer && line.issuer.lock() != own_mark() && !has_implicit_order()) {
    return client::failure(ErrorCode::would_deadlock,
                           "another thread issues to device " + std::to_string(device) +
                               "; let one thread do it, or set NCCL_LAUNCH_ORDER_IMPLICIT=1");
  }
  const auto is_free = [&] {
    if (line.inside == self) return true;
    return line.inside == nobody && (taker != Taker::onlooker || line.waiting_count == 0);
  };
  while (!is_free()) {
    const auto now = Clock::now();
    if (now >= until) {
      return client::failure(ErrorCode::timed_out, "another thread is in a call on device " +
                                                       std::to_string(device) + " still");
    }
    ++line.waiting_count;
    given_back_.wait_until(lock, std::min<Clock::time_point>(until, now + between_looks_at_turns));
    --line.waiting_count;
    if (gate.is_closed()) break;
  }
  if (gate.is_closed()) return *gate.reason();  // its handle may be gone
  line.inside = self;
  ++line.depth;
  return Turn(*this, device);
}

void Turns::give_back(int device) {
  {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[device];
    if (--line.depth > 0) return;
    line.inside = std::thread::id();
  }
  given_back_.notify_all();
}

}  // namespace muster::nccl
