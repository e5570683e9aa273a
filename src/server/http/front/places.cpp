#include "server/http/front/places.h"

#include <utility>

namespace muster::server::http {

Places::Place Places::take(const std::string& unit) {
  const auto found = by_unit_.find(unit);
  if (taken_ >= all_max_ || (found != by_unit_.end() && found->second >= unit_max_)) return nullptr;
  auto give_back = [this, unit](void*) {
    --taken_;
    const auto own = by_unit_.find(unit);
    if (--own->second == 0) by_unit_.erase(own);
  };
  ++by_unit_[unit];
  ++taken_;
  return Place(this, std::move(give_back));
}

Places::Place Places::take_for_refusal() {
  if (refusals_ >= refusals_max) return nullptr;
  ++refusals_;
  return Place(this, [this](void*) { --refusals_; });
}

}  // namespace muster::server::http
