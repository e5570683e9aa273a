#include "client/group/group_watch.h"

#include <algorithm>
#include <utility>

MUSTER_BEGIN_NAMESPACE

void GroupWatch::Subscription::tell(const Error& error) {
  const std::lock_guard lock(mutex_);
  const auto held = tell_;  // it may end the watch
  if (held) (*held)(error);
}

void GroupWatch::Subscription::end() {
  const std::lock_guard lock(mutex_);
  tell_.reset();
}

GroupWatch::GroupWatch() = default;
GroupWatch::GroupWatch(std::shared_ptr<Subscription> subscription)
    : subscription_(std::move(subscription)) {}
GroupWatch::GroupWatch(GroupWatch&&) noexcept = default;

GroupWatch& GroupWatch::operator=(GroupWatch&& other) noexcept {
  std::swap(subscription_, other.subscription_);
  return *this;
}

GroupWatch::~GroupWatch() {
  if (subscription_) subscription_->end();
}

MUSTER_END_NAMESPACE

namespace muster::client {

GroupWatch GroupWatches::add(Subscription::Tell tell) {
  auto subscription = std::make_shared<Subscription>(std::move(tell));
  std::optional<Error> before;
  {
    const std::lock_guard lock(mutex_);
    subscriptions_.erase(std::remove_if(subscriptions_.begin(), subscriptions_.end(),
                                        [](const auto& each) { return each.expired(); }),
                         subscriptions_.end());
    subscriptions_.push_back(subscription);
    before = first_;
  }
  if (before) subscription->tell(*before);
  return GroupWatch(std::move(subscription));
}

void GroupWatches::tell(const Error& error) {
  std::vector<std::shared_ptr<Subscription>> told;
  {
    const std::lock_guard lock(mutex_);
    const bool is_end = error.code != ErrorCode::interrupted;
    if (!first_ && is_end) first_ = error;
    for (const auto& each : subscriptions_) {
      if (auto subscription = each.lock()) told.push_back(std::move(subscription));
    }
  }
  for (const auto& subscription : told) subscription->tell(error);
}

}  // namespace muster::client
