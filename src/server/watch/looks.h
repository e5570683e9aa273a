#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "base/time.h"
#include "core/inspector.h"
#include "core/watch/look.h"

namespace muster::server {

/// What others want to look at, and what was seen of it. Those who want the same within a second
/// get the same; how much is kept for them is limited, and how much work it is.
class Looks {
 public:
  static constexpr Duration fresh = std::chrono::seconds(1);

  Looks() = default;
  Looks(const Looks&) = delete;
  Looks& operator=(const Looks&) = delete;

  // For those who look. Any thread.

  /// Null: it is not there yet, and was asked for.
  std::shared_ptr<const core::Looked> latest(const core::Look& look, base::Instant now);
  /// The same, and waits for it.
  std::shared_ptr<const core::Looked> latest(const core::Look& look, base::Instant now,
                                             Duration wait_max);

  // For the thread that serves.

  /// Whether there is something to do. Costs next to nothing.
  bool are_wanted() const { return are_wanted_.load(std::memory_order_relaxed); }
  /// A piece of what is wanted. After a failure nothing of it is left.
  ///
  /// returns  whether there is more to do
  bool go_on(core::Inspector& inspector, base::Instant now);
  /// There will be no more.
  void close();

 private:
  static constexpr std::size_t looks_max = 64;
  static constexpr std::uint64_t bytes_max = 32u << 20;
  static constexpr Duration kept_for = std::chrono::seconds(10);

  struct Entry {
    std::shared_ptr<const core::Looked> seen;  ///< null: nothing yet
    base::Instant seen_at{};
    base::Instant asked_at{};
    bool is_wanted = false;
  };
  using Entries = std::map<core::Look, Entry>;

  std::shared_ptr<const core::Looked> ask(const core::Look& look, base::Instant now);
  void make_room(base::Instant now);
  std::uint64_t bytes() const;
  bool take_next();
  void finish(base::Instant now);

  std::atomic<bool> are_wanted_{false};
  std::mutex mutex_;
  std::condition_variable newer_;
  Entries entries_;
  std::deque<core::Look> wanted_;  ///< those who are, in their order
  bool is_closed_ = false;

  // Of the thread that serves.
  std::shared_ptr<core::Looked> in_work_;  ///< null: none
  core::Look look_;
};

}  // namespace muster::server
