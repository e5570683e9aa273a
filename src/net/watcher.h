#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "net/unique_fd.h"

namespace muster::net {

class Loop;

/// Owns one descriptor and hears what the loop's epoll set, which is level-triggered, says of it.
/// On the I/O thread only.
class Watcher {
 public:
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 protected:
  explicit Watcher(Loop& loop) : loop_(&loop) {}
  ~Watcher() { let_go(); }

  Loop& loop() const { return *loop_; }
  int fd() const { return fd_.get(); }

  /// Takes `fd` over; it is in no epoll set yet.
  void hold(UniqueFd fd);

  /// From now on is told of `events` (EPOLLIN, EPOLLOUT) as long as they hold, and of the
  /// descriptor's end. With 0 it hears nothing: the end, too, would be told without end.
  ///
  /// returns  0, or the errno for which it hears nothing now
  [[nodiscard]] int watch(std::uint32_t events) noexcept;
  std::uint32_t watched() const { return watched_; }

  /// Closes the descriptor; no event follows.
  void let_go() noexcept { give_away(); }
  /// The descriptor, for another one to own; no event follows.
  UniqueFd give_away() noexcept;

 private:
  friend class Loop;

  /// May destroy the watcher.
  virtual void on_ready(std::uint32_t events) = 0;
  /// The loop ends, and the descriptor goes next. May destroy the watcher.
  virtual void on_loop_end() noexcept {}

  Loop* loop_;
  Watcher* previous_ = nullptr;  // of those that hold a descriptor of this loop
  Watcher* next_ = nullptr;
  UniqueFd fd_;
  std::uint32_t watched_ = 0;
};

}  // namespace muster::net
