#include "server/watch/keeper.h"

#include <algorithm>
#include <utility>

#include "server/metrics/figures.h"

// Without memory nothing is told: nobody may end the server by looking at it.

namespace muster::server {
namespace {

/// Of a piece: so many ranks are looked at in a fraction of a millisecond.
constexpr std::uint64_t weight_max = 16384;
constexpr std::size_t changes_max = 2048;
/// Of what is looked at by name: so many pieces in a turn, and in half a second. A page of 64 KiB
/// is one.
constexpr std::uint32_t pieces_per_turn = 4;
constexpr std::uint32_t pieces_per_refill = 128;
constexpr Duration refill_every = std::chrono::milliseconds(500);
constexpr Duration watched_for = std::chrono::seconds(10);
/// By so much the clock on the wall may have been set before times are told by it anew.
constexpr Duration wall_moves_max = std::chrono::seconds(2);

}  // namespace

void WatchKeeper::refill(base::Instant now) {
  if (source_->looks.are_wanted()) watched_until_ = now + watched_for;
  if (now - refilled_at_ < refill_every) return;
  refilled_at_ = now;
  pieces_left_ = pieces_per_refill;
}

void WatchKeeper::begin(const std::shared_ptr<const Figures>& figures,
                        const core::Inspector& inspector, base::Instant now) {
  watched_until_ = now + watched_for;
  figures_ = figures;
  const auto wall_now = std::chrono::floor<std::chrono::milliseconds>(figures->taken);
  const Duration to_wall = wall_now.time_since_epoch() - now.time_since_epoch();
  const Duration moved = to_wall - to_wall_.value_or(to_wall);
  if (!to_wall_ || moved > wall_moves_max || moved < -wall_moves_max) to_wall_ = to_wall;
  glances_.emplace();
  glances_->groups.reserve(std::min<std::uint64_t>(inspector.counts().groups, 4096));
}

bool WatchKeeper::do_piece(core::Inspector& inspector, base::Instant now) {
  if (glances_) {
    try {
      inspector.go_on(*glances_, weight_max);
      if (!glances_->is_done) return true;
      publish(inspector, now);
    } catch (...) {
    }
    glances_.reset();
    figures_ = nullptr;
    return source_->looks.are_wanted();
  }
  for (std::uint32_t count = 0; count < pieces_per_turn; ++count) {
    if (pieces_left_ == 0) return false;  // the next tick goes on
    --pieces_left_;
    if (!source_->looks.go_on(inspector, now)) return false;
  }
  return true;
}

void WatchKeeper::publish(core::Inspector& inspector, base::Instant now) {
  auto seen = std::make_shared<Seen>();
  seen->number = ++number_;
  seen->figures = *figures_;
  seen->groups = std::move(glances_->groups);
  seen->changes = inspector.history().changes(source_->known_change.load(), changes_max);
  seen->last_change = inspector.history().last_change();
  seen->taken = now;
  seen->started = inspector.start();
  seen->to_wall = *to_wall_;
  source_->publisher.publish(std::move(seen), now);
}

void WatchKeeper::close() {
  if (source_ == nullptr) return;
  source_->publisher.close();
  source_->looks.close();
}

}  // namespace muster::server
