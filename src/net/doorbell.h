#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "net/asio.h"

namespace muster::net {

/// Wakes what lives on an I/O thread from where nothing else may be called: a signal handler.
/// All of one I/O thread share one descriptor; each ring wakes every listener.
class Doorbell : public asio::execution_context::service {
 public:
  static asio::execution_context::id id;

  explicit Doorbell(asio::execution_context& context);

  /// The bell of the loop that `context` is; made when first asked for.
  static Doorbell& of(asio::execution_context& context);

  /// What `ring` takes; -1: the process has no descriptor left. Lives as long as the loop.
  int fd() const { return fd_; }

  /// Async-signal-safe, any thread.
  static void ring(int fd) noexcept;

  // On the I/O thread only.

  std::uint64_t add(std::function<void()> listener);
  void remove(std::uint64_t number);

 private:
  void shutdown() override;
  void wait();
  void rang();

  int fd_;  ///< of `descriptor_`
  asio::posix::stream_descriptor descriptor_;
  bool is_waiting_ = false;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::function<void()>> listeners_;
};

}  // namespace muster::net
