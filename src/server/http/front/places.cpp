#include "server/http/front/places.h"

#include <algorithm>

namespace muster::server::http {

Places::Seat::Seat(Places& places, std::string unit) : places_(places), unit_(std::move(unit)) {
  ++places_.by_unit_[unit_];
  ++places_.taken_;
}

Places::Seat::~Seat() {
  settle();
  --places_.taken_;
  const auto own = places_.by_unit_.find(unit_);
  if (--own->second == 0) places_.by_unit_.erase(own);
}

void Places::Seat::wait(std::function<void()> yield) {
  places_.waiting_.push_back(this);
  yield_ = std::move(yield);
}

void Places::Seat::settle() {
  if (!yield_) return;
  yield_ = nullptr;
  places_.waiting_.remove(this);
}

bool Places::has_room(const std::string& unit) const {
  const auto found = by_unit_.find(unit);
  return taken_ < all_max_ && (found == by_unit_.end() || found->second < unit_max_);
}

/// Whose place would help.
Places::Seat* Places::longest_waiting(const std::string& unit) const {
  const auto own = by_unit_.find(unit);
  const bool is_unit_full = own != by_unit_.end() && own->second >= unit_max_;
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Seat* seat) {
    return !is_unit_full || seat->unit_ == unit;
  });
  return found == waiting_.end() ? nullptr : *found;
}

Places::Place Places::take(const std::string& unit) {
  if (!has_room(unit)) {
    Seat* const seat = longest_waiting(unit);
    if (seat == nullptr) return nullptr;
    const auto yield = seat->yield_;
    yield();
    if (!has_room(unit)) return nullptr;
  }
  return std::make_shared<Seat>(*this, unit);
}

std::shared_ptr<void> Places::take_for_refusal() {
  if (refusals_ >= refusals_max) return nullptr;
  ++refusals_;
  return {this, [this](void*) { --refusals_; }};
}

}  // namespace muster::server::http
