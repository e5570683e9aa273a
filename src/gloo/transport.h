#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <set>

#include <gloo/transport/context.h>

namespace muster::gloo_internal {

/// Ends a call of Gloo's that was interrupted.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Gloo's transport, with one deadline for all that a call waits for, and an end to it: each buffer
/// that Gloo's algorithms make waits no longer than that, and stops when another thread says so.
///
/// threads  `interrupt` any; everything else: those of one call at a time
class Transport final : public ::gloo::transport::Context {
 public:
  using Clock = std::chrono::steady_clock;
  using Inner = std::shared_ptr<::gloo::transport::Context>;

  explicit Transport(Inner inner) : Context(inner->rank, inner->size), inner_(std::move(inner)) {}

  std::unique_ptr<::gloo::transport::Pair>& getPair(int peer) override {
    return inner_->getPair(peer);
  }
  std::unique_ptr<::gloo::transport::Pair>& createPair(int peer) override {
    return inner_->createPair(peer);
  }
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* memory,
                                                                        size_t bytes) override;

  void begin(Clock::time_point deadline) {
    deadline_ = deadline;
    waited_for_ = -1;
  }
  Clock::time_point deadline() const { return deadline_; }
  /// Calls that wait leave at once, and none waits again.
  void interrupt();
  /// Whom the last wait of the call was for; -1: nobody.
  int waited_for() const { return waited_for_; }

 private:
  class Buffer;

  void enter(Buffer& buffer);
  void leave(Buffer& buffer);
  void check() const;
  std::chrono::milliseconds left() const;

  const Inner inner_;
  Clock::time_point deadline_{};
  std::atomic<int> waited_for_{-1};
  std::atomic<bool> is_interrupted_{false};
  std::mutex buffers_mutex_;
  std::set<Buffer*> buffers_;
};

}  // namespace muster::gloo_internal
