#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>

#include "base/time.h"
#include "core/inspector.h"
#include "core/watch/look.h"
#include "server/watch/source.h"

namespace muster::server {

struct Figures;

/// On the thread that serves: takes what others look at, in pieces.
class WatchKeeper {
 public:
  explicit WatchKeeper(std::shared_ptr<Watch::Source> source) : source_(std::move(source)) {}

  /// In each tick: begins what is due.
  ///
  /// figures  makes them
  template <class MakeFigures>
  void tick(core::Inspector& inspector, base::Instant now, const MakeFigures& make_figures) {
    if (source_ == nullptr) return;
    refill(now);
    if (glances_ || !source_->publisher.is_due(now)) return;
    try {
      begin(make_figures(), inspector, now);
    } catch (const std::bad_alloc&) {
      glances_.reset();
    }
  }
  /// In each turn: does a piece of what was begun. Costs next to nothing if there is none.
  ///
  /// returns  whether there is more to do at once
  bool go_on(core::Inspector& inspector, base::Instant now) {
    if (source_ == nullptr || (!glances_ && !source_->looks.are_wanted())) return false;
    return do_piece(inspector, now);
  }
  /// Whether it should tick more often than it had to.
  bool is_watched(base::Instant now) const { return now < watched_until_; }
  void close();

 private:
  void refill(base::Instant now);
  void begin(const std::shared_ptr<const Figures>& figures, const core::Inspector& inspector,
             base::Instant now);
  bool do_piece(core::Inspector& inspector, base::Instant now);
  void publish(core::Inspector& inspector, base::Instant now);

  const std::shared_ptr<Watch::Source> source_;  ///< null: nobody looks
  std::optional<core::Glances> glances_;         ///< in work
  std::shared_ptr<const Figures> figures_;
  std::uint64_t number_ = 0;
  std::optional<Duration> to_wall_;
  std::uint32_t pieces_left_ = 0;  ///< of looks, until they are filled up again
  base::Instant refilled_at_{};
  base::Instant watched_until_{};
};

}  // namespace muster::server
