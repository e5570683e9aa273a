#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/monotonic_now.h"
#include "base/time.h"

namespace muster::server {

/// Hands plain data from the thread that serves to others, which look at it when they like.
///
/// Life: somebody asks -> the thread that serves sees that in its next tick, and publishes what
/// there is at that moment -> it goes on for a minute, at most twice a second, so that who asks
/// again and again has fresh data without waiting -> nothing more is published until somebody asks.
/// So a server that nobody looks at does no work for it, and nobody can make it do much.
template <class Data>
class Publisher {
 public:
  static constexpr Duration interval = std::chrono::milliseconds(500);
  static constexpr Duration interest = std::chrono::minutes(1);
  /// Data that are no older are not waited for; the thread that serves may tick every half second.
  static constexpr Duration freshness = std::chrono::milliseconds(1500);

  /// on_asked  called when somebody asks, on his thread, at most once until something is published:
  ///           it may wake the thread that serves, which would look in its next tick otherwise
  explicit Publisher(std::function<void()> on_asked = {}) : on_asked_(std::move(on_asked)) {}
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // For those who look. Any thread.

  /// What was published last, and asks for newer data. Does not wait.
  ///
  /// returns  null when nothing was published yet
  std::shared_ptr<const Data> latest() {
    ask();
    const std::lock_guard lock(mutex_);
    return published_;
  }

  /// The same, but data that are older than `freshness` are waited for, `wait_max` at most.
  std::shared_ptr<const Data> latest(Duration wait_max) {
    std::unique_lock lock(mutex_);
    if (published_ != nullptr && base::monotonic_now() - published_at_ < freshness) {
      return published_;
    }
    if (is_closed_) return nullptr;
    const std::uint64_t before = count_;
    lock.unlock();
    ask();
    lock.lock();
    newer_.wait_for(lock, wait_max, [&] { return count_ != before; });  // closed: it counts, too
    return published_;
  }

  // For the thread that serves.

  /// Whether somebody has asked in the last minute, and the last data are old enough. Costs next to
  /// nothing.
  bool is_due(base::Instant now) const {
    const bool is_wanted = is_asked_.load(std::memory_order_relaxed) || now < wanted_until_;
    return is_wanted && now - published_at_ >= interval;
  }

  /// data  of the moment `now`
  void publish(std::shared_ptr<const Data> data, base::Instant now) {
    {
      const std::lock_guard lock(mutex_);
      published_.swap(data);
      published_at_ = now;
      ++count_;
      if (is_asked_.exchange(false, std::memory_order_relaxed)) wanted_until_ = now + interest;
    }
    newer_.notify_all();
  }

  /// There will be no more, and what there was is no longer told.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      published_ = nullptr;
      is_closed_ = true;
      ++count_;
    }
    newer_.notify_all();
  }

 private:
  void ask() {
    if (!is_asked_.exchange(true) && on_asked_) on_asked_();
  }

  const std::function<void()> on_asked_;
  std::atomic<bool> is_asked_{false};
  std::mutex mutex_;  ///< held for moments only; the thread that serves waits for it
  std::condition_variable newer_;
  std::shared_ptr<const Data> published_;
  // Written by the thread that serves alone.
  base::Instant published_at_{};
  base::Instant wanted_until_{};
  std::uint64_t count_ = 0;
  bool is_closed_ = false;
};

}  // namespace muster::server
