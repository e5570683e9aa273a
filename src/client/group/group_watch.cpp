#include "client/group/group_watch.h"

#include <algorithm>
#include <utility>

MUSTER_BEGIN_NAMESPACE

void GroupWatch::Place::tell(const Error& error) {
  const std::lock_guard lock(mutex_);
  const auto held = tell_;  // it may end the watch
  if (held) (*held)(error);
}

void GroupWatch::Place::end() {
  const std::lock_guard lock(mutex_);
  tell_.reset();
}

GroupWatch::GroupWatch() = default;
GroupWatch::GroupWatch(std::shared_ptr<Place> place) : place_(std::move(place)) {}
GroupWatch::GroupWatch(GroupWatch&&) noexcept = default;

GroupWatch& GroupWatch::operator=(GroupWatch&& other) noexcept {
  std::swap(place_, other.place_);
  return *this;
}

GroupWatch::~GroupWatch() {
  if (place_) place_->end();
}

MUSTER_END_NAMESPACE

namespace muster::client {

GroupWatch GroupWatches::add(Place::Tell tell) {
  auto place = std::make_shared<Place>(std::move(tell));
  std::optional<Error> before;
  {
    const std::lock_guard lock(mutex_);
    places_.erase(std::remove_if(places_.begin(), places_.end(),
                                 [](const auto& each) { return each.expired(); }),
                  places_.end());
    places_.push_back(place);
    before = first_;
  }
  if (before) place->tell(*before);
  return GroupWatch(std::move(place));
}

void GroupWatches::tell(const Error& error) {
  std::vector<std::shared_ptr<Place>> told;
  {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = error;
    for (const auto& each : places_) {
      if (auto place = each.lock()) told.push_back(std::move(place));
    }
  }
  for (const auto& place : told) place->tell(error);
}

}  // namespace muster::client
