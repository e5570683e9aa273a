#pragma once

#include <cstddef>

#include "base/time.h"
#include "core/memory/chain.h"
#include "server/peer/newcomer.h"
#include "server/peer/units.h"

namespace muster::server {

/// Whose handshake of TLS is begun when.
///
/// A handshake takes as much time as some twenty requests, and anybody can ask for one. Those who
/// ask wait by units: units in order, and the newcomers of each in order. So many handshakes are
/// under way at most. What they take is paid for until who asks has proved to be known: all unknown
/// ones together have a fifth of the time, and a unit whose handshakes have failed waits longer.
class Handshakes {
 public:
  static constexpr std::size_t under_way_max = 256;
  static constexpr Duration look_interval{std::chrono::milliseconds(2)};
  /// What a handshake takes the server, as it is paid for: five times of it, since all that are not
  /// known have a fifth of the time. What is paid for those who turn out to be known comes back.
  static constexpr Duration price{5 * std::chrono::microseconds(200)};

  /// All that its handshake begins with has come.
  void add(Newcomer& newcomer);
  /// It waits no more, or its handshake is no more under way.
  void leave(Newcomer& newcomer);

  bool has_waiting() const { return !units_.empty(); }
  /// The next one, whose handshake is under way from now on; null: nobody's turn has come.
  Newcomer* take_next(base::Instant now);
  /// It is gone, and nothing was done for it: it is to be closed.
  void spared() { paid_until_ -= price; }
  /// It is known who that is. It keeps its place until its hello is there: so many sessions of TLS
  /// at most are not charged to anybody.
  void succeeded(Newcomer& newcomer);
  void failed(Newcomer& newcomer, base::Instant now);

  /// While all places are taken and others wait: of the unit that has most of them, the one that
  /// came first, if it had time enough. Null: there is none.
  Newcomer* overdue(base::Instant now) const;
  /// When somebody's turn may come, of whom it has not come yet; far_future: nobody waits for time.
  base::Instant next_time(base::Instant now) const {
    return units_.empty() ? base::far_future : now + look_interval;
  }

 private:
  core::Chain<Unit> units_;  ///< of which somebody waits
  std::size_t units_count_ = 0;
  core::Chain<Newcomer> under_way_;  ///< who came first
  std::size_t under_way_count_ = 0;
  base::Instant paid_until_{};  ///< of what all that are not known have taken
};

}  // namespace muster::server
