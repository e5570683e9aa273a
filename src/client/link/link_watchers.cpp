#include <utility>
#include <vector>

#include "client/link/link.h"

// Who hears of epochs and of the session's end: the groups of this link, and the store's owner.

namespace muster::client {

bool Link::watch(std::uint64_t epoch, std::weak_ptr<EpochWatcher> watcher) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<EpochWatcher>& place = watchers_[epoch];
  if (!place.expired()) return false;
  place = std::move(watcher);
  return true;
}

void Link::unwatch(std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  const auto found = watchers_.find(epoch);
  if (found != watchers_.end() && found->second.expired()) watchers_.erase(found);
}

/// Without the lock: they may call.
void Link::tell_watchers(const wire::Event& event) {
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

void Link::execute(protocol::Notify& effect) {
  const wire::Event& event = effect.event;
  tell_watchers(event);
  if (event.kind != wire::EventKind::session_ended) return;
  close_set_aside();
  if (!options_.on_session_end) return;
  handlers_.dispatch("on_session_end",
                     [told = options_.on_session_end, error = event.error] { told(error); });
}

}  // namespace muster::client
