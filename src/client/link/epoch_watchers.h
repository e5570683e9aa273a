#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "wire/error_body.h"

namespace muster::client {

/// What wants to know of the epoch it belongs to.
class EpochWatcher {
 public:
  virtual void on_event(const wire::Event& event) = 0;

 protected:
  ~EpochWatcher() = default;
};

/// Who hears of epochs and of the session's end: the groups of a link. From any thread; nobody is
/// told with the lock held.
class EpochWatchers {
 public:
  /// False if somebody watches that epoch already.
  [[nodiscard]] bool add(std::uint64_t epoch, std::weak_ptr<EpochWatcher> watcher);
  /// The watcher of that epoch is gone.
  void remove(std::uint64_t epoch);
  void tell(const wire::Event& event);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<EpochWatcher>> watchers_;
};

}  // namespace muster::client
