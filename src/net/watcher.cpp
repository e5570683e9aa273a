#include "net/watcher.h"

#include <utility>

#include "net/loop.h"

namespace muster::net {

void Watcher::hold(UniqueFd fd) {
  let_go();
  if (!fd) return;
  fd_ = std::move(fd);
  loop_->admit(*this);
}

int Watcher::watch(std::uint32_t events) noexcept {
  if (events == watched_) return 0;
  const int failed = loop_->change(*this, events);
  watched_ = failed == 0 ? events : 0;
  return failed;
}

/// Closing is not enough: as long as a forked child has a copy, a closed descriptor stays in the
/// epoll set.
UniqueFd Watcher::give_away() noexcept {
  if (!fd_) return {};
  loop_->dismiss(*this);
  watched_ = 0;
  return std::move(fd_);
}

}  // namespace muster::net
