#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>

namespace muster::base {

/// Knows the process that made it. A forked child of that has none of its threads, and its locks as
/// they were.
class Owner {
 public:
  bool is_forked() const { return ::getpid() != pid_; }

 private:
  pid_t pid_ = ::getpid();
};

/// Keeps `object` until the process ends, reachable for leak checkers. For a forked child, where
/// the destructors of what belongs to the parent's threads must not run.
inline void keep_forever(std::shared_ptr<void> object) {
  struct Kept {
    std::shared_ptr<void> object;
    Kept* next = nullptr;
  };
  static constinit std::atomic<Kept*> kept{nullptr};
  auto* const entry = new Kept{std::move(object), kept.load()};
  while (!kept.compare_exchange_weak(entry->next, entry)) {
  }
}

}  // namespace muster::base
