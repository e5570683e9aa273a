#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "net/asio.h"

namespace muster::net {

/// Which file descriptors the sockets of one loop have, for a forked child that must close its
/// copies: their destructors would disturb the parent's epoll set, which the child shares.
class SocketSet {
 public:
  SocketSet() = default;
  ~SocketSet();
  SocketSet(const SocketSet&) = delete;
  SocketSet& operator=(const SocketSet&) = delete;

  void add(int fd);
  void remove(int fd);

  /// Closes and forgets all. In a forked child: takes no lock and frees nothing.
  void close_all();

 private:
  static constexpr int bits = 64;
  static constexpr int words_per_block = 64;
  static constexpr int block_count = 1024;  // 4 million descriptors
  using Block = std::array<std::atomic<std::uint64_t>, words_per_block>;

  Block* block(int fd, bool make);

  std::array<std::atomic<Block*>, block_count> blocks_{};
};

/// Hands work to a loop from threads that may outlive it.
class Mailbox {
 public:
  explicit Mailbox(asio::io_context& context) : context_(&context) {}

  /// Runs `work` on the I/O thread; drops it when the loop is gone.
  void post(std::function<void()> work);
  void shut();

 private:
  std::mutex mutex_;
  asio::io_context* context_;
};

/// Runs what ends something after a failure; it needs a little memory, too, so when it throws it is
/// called again, for a second at most.
template <class End>
void insist(const End& end) noexcept {
  for (int attempt = 0; attempt < 100; ++attempt) {
    try {
      return end();
    } catch (...) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

/// What everything on one io_context shares.
class LoopState : public asio::execution_context::service {
 public:
  static asio::execution_context::id id;

  explicit LoopState(asio::execution_context& context);

  /// The state of the loop that `context` is; made when first asked for.
  static LoopState& of(asio::execution_context& context);

  SocketSet& sockets() { return sockets_; }
  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

  /// `end` runs on the I/O thread when something was thrown there, such as for want of memory: what
  /// was at work may be half done, so whoever has state on this loop ends it and begins anew. Used
  /// on the I/O thread only; `end` itself must not call `forget`, and is called again, for a second
  /// at most, when it throws.
  ///
  /// returns  what `forget` takes
  std::uint64_t on_failure(std::function<void(std::string_view why)> end);
  void forget(std::uint64_t number) { failure_listeners_.erase(number); }
  void fail(std::string_view why) noexcept;

  /// Where reads go; what is in it is used up before the next one.
  std::array<char, 64 * 1024> read_buffer;

 private:
  void shutdown() override;

  SocketSet sockets_;
  std::shared_ptr<Mailbox> mailbox_;
  std::map<std::uint64_t, std::function<void(std::string_view why)>> failure_listeners_;
  std::uint64_t last_number_ = 0;
};

/// Keeps a descriptor in its loop's set.
class TrackedSocket {
 public:
  TrackedSocket(LoopState& loop, int fd) : loop_(&loop), fd_(fd) { loop_->sockets().add(fd_); }
  ~TrackedSocket() { release(); }
  TrackedSocket(const TrackedSocket&) = delete;
  TrackedSocket& operator=(const TrackedSocket&) = delete;

  /// Before the descriptor is closed.
  void release() {
    if (fd_ >= 0) loop_->sockets().remove(fd_);
    fd_ = -1;
  }

 private:
  LoopState* loop_;
  int fd_;
};

}  // namespace muster::net
