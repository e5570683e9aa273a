#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.h"

namespace muster::client::protocol {

using base::Instant;

/// How long the server is surely still holding the session: proven by what it answered, from the
/// time at which that was *sent*, since nobody knows how long the answer took.
class Lease {
 public:
  struct Heartbeat {
    std::uint64_t number = 0;
    std::uint64_t serial = 0;  ///< of its frame
    Instant sent{};
  };

  /// A hello that was sent then has been answered.
  void begin(Instant hello_sent) { proven_ = hello_sent; }

  /// A heartbeat goes out; returns its number.
  std::uint64_t beat(std::uint64_t serial, Instant now) {
    unanswered_.push_back({++last_number_, serial, now});
    return last_number_;
  }

  /// The heartbeat that this number answers; nothing when none of this connection does.
  std::optional<Heartbeat> answered(std::uint64_t number) {
    std::optional<Heartbeat> found;
    while (!unanswered_.empty() && unanswered_.front().number <= number) {
      if (unanswered_.front().number == number) found = unanswered_.front();
      unanswered_.pop_front();
    }
    if (found) proven_ = found->sent;
    return found;
  }

  void connection_lost() { unanswered_.clear(); }

  Instant proven() const { return proven_; }
  /// Sending time of the oldest heartbeat without an answer.
  std::optional<Instant> waiting_since() const {
    if (unanswered_.empty()) return std::nullopt;
    return unanswered_.front().sent;
  }
  /// Serial of the last heartbeat of this connection that has no answer yet; 0: none.
  std::uint64_t last_serial() const { return unanswered_.empty() ? 0 : unanswered_.back().serial; }

 private:
  std::uint64_t last_number_ = 0;
  Instant proven_{};
  std::deque<Heartbeat> unanswered_;
};

}  // namespace muster::client::protocol
