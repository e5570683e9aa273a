#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client.h"

namespace muster::sim {

/// What is known about one process, from its start to its end.
struct Life {
  std::uint64_t client = 0;
  std::uint32_t slot = 0;  ///< the rank that it wants to be
  ProcessId process;
  std::uint64_t pid = 0;
  std::string name_space;
  wire::Role role = wire::Role::client;
  bool is_stranger = false;  ///< of another tenant; what it is refused the witness judges
  std::string name;
  Instant born{};
  std::optional<Instant> died;
  bool said_goodbye = false;
  bool was_reported = false;
  std::optional<Instant> revoked_until;  ///< when its credentials were back, the last time
  bool may_be_fenced = false;            ///< some regroup may have gone on without it

  Instant runs_again{};  ///< after it was stopped
  Instant cut_since{};   ///< from its server, the last time
  Instant cut_until{};
  Instant finds_out{};  ///< by then, that its connection has ended, if that was without a word
  Instant broken_at{};  ///< its connection, the last time, so that the server learns of it

  /// When something kept it from its server, or from running.
  std::vector<std::pair<Instant, Instant>> disturbances;

  // As the server's process saw it, without the time in which that did not run itself.
  std::optional<Duration> heard;   ///< the last byte of it, since the world began
  std::optional<Duration> closed;  ///< its connection ended; until the next byte
  Duration longest_silence{0};
  Duration longest_closed{0};
  bool was_away = false;  ///< for however short a time

  /// When what it sent, or was sent, may have been held back for long on its way, and was not asked
  /// anew since.
  std::vector<std::pair<Instant, Instant>> held;

  bool was_held(Instant from, Instant until) const {
    return std::any_of(held.begin(), held.end(), [&](const auto& each) {
      return each.first <= until && each.second >= from;
    });
  }
  /// When the last of what was sent to it has arrived, if that is held back.
  Instant held_until() const {
    Instant last{};
    for (const auto& each : held) last = std::max(last, each.second);
    return last;
  }
  /// Whether what it asked then may be denied, since its credentials were gone.
  bool may_be_denied(Instant asked) const {
    const Instant hears = std::max({held_until(), runs_again, finds_out, cut_until});
    return revoked_until && asked <= std::max(*revoked_until, hears) + std::chrono::seconds(2);
  }
  bool is_calm(Instant from, Instant until) const {
    for (auto each = disturbances.rbegin(); each != disturbances.rend(); ++each) {
      if (each->first <= until && each->second >= from) return false;
    }
    return !died || *died > until;
  }
  /// How much of that time it was disturbed.
  Duration disturbed_within(Instant from, Instant until) const {
    Duration sum{0};
    for (const auto& [begin, end] : disturbances) {
      const Instant first = std::max(begin, from);
      const Instant last = std::min(end, until);
      if (first < last) sum += last - first;
    }
    return sum;
  }
};

}  // namespace muster::sim
