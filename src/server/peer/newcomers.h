#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "base/time.h"
#include "core/memory/chain.h"
#include "core/session/connection_limits.h"
#include "server/peer/newcomer.h"
#include "server/peer/units.h"

namespace muster::server {

/// Who has connected and not said hello yet: since when, and how many there are of each unit.
class Newcomers {
 public:
  explicit Newcomers(const core::ConnectionLimits& limits) : limits_(limits) {}
  ~Newcomers();
  Newcomers(const Newcomers&) = delete;
  Newcomers& operator=(const Newcomers&) = delete;

  /// The connection is not started yet.
  Newcomer& add(ConnectionEvents& events, std::shared_ptr<net::Channel> connection, Unit& unit,
                const Arrival& arrival, base::Instant now);
  /// It has said its hello, or is gone: it is the caller's.
  std::unique_ptr<Newcomer> take(Newcomer& newcomer);

  std::size_t count() const { return count_; }
  bool empty() const { return count_ == 0; }

  /// There is one.
  Newcomer& first() const { return all_.first(); }
  /// Of the unit that has most, the one that came first. There is one.
  Newcomer& first_of_fullest() const;

  /// One whose time is over; null: there is none. The caller takes it.
  Newcomer* overdue(base::Instant now) const;
  /// When the next one's time is over; far_future when there is none.
  base::Instant next_deadline() const;

 private:
  void count_anew(Unit& unit);

  const core::ConnectionLimits& limits_;
  std::size_t count_ = 0;
  core::Chain<Newcomer> all_;  ///< who came first is overdue first
  /// Units by the number of their newcomers; none has more than `most_`.
  std::deque<core::Chain<Unit>> with_count_;
  std::size_t most_ = 0;
};

}  // namespace muster::server
