#include "client/link/epoch_watchers.h"

#include <utility>
#include <vector>

namespace muster::client {

bool EpochWatchers::add(std::uint64_t epoch, std::weak_ptr<EpochWatcher> watcher) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<EpochWatcher>& place = watchers_[epoch];
  if (!place.expired()) return false;
  place = std::move(watcher);
  return true;
}

void EpochWatchers::remove(std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  const auto found = watchers_.find(epoch);
  if (found != watchers_.end() && found->second.expired()) watchers_.erase(found);
}

void EpochWatchers::tell(const wire::Event& event) {
  const bool is_of_session = event.kind == wire::EventKind::session_ended;
  std::vector<std::shared_ptr<EpochWatcher>> concerned;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [epoch, weak] : watchers_) {
      if (!is_of_session && epoch != event.epoch) continue;
      if (auto watcher = weak.lock()) concerned.push_back(std::move(watcher));
    }
    if (is_of_session) watchers_.clear();  // another server counts its epochs from the beginning
  }
  for (const auto& watcher : concerned) watcher->on_event(event);
}

}  // namespace muster::client
