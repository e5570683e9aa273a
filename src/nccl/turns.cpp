#include "nccl/turns.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "client/failure.h"

namespace muster::nccl {
namespace {

constexpr std::chrono::milliseconds between_looks{5};

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
  if (taker == Taker::issuer && line.issuer == nobody) line.issuer = self;
  if (taker == Taker::issuer && line.issuer != self && !has_implicit_order()) {
    return client::failure(ErrorCode::would_deadlock,
                           "another thread issues to device " + std::to_string(device) +
                               "; let one thread do it, or set NCCL_LAUNCH_ORDER_IMPLICIT=1");
  }
  while (line.inside != nobody && line.inside != self) {
    if (gate.is_closed()) return *gate.reason();
    const auto now = Clock::now();
    if (now >= until) {
      return client::failure(ErrorCode::timed_out, "another thread is in a call on device " +
                                                       std::to_string(device) + " still");
    }
    given_back_.wait_until(lock, std::min<Clock::time_point>(until, now + between_looks));
  }
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
