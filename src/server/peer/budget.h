#pragma once

#include <algorithm>
#include <cstdint>

namespace muster::server {

/// Work that somebody may do in a turn, in the steps of the engine. What one event has cost beyond
/// it is owed: it is taken from the next turns.
class Budget {
 public:
  std::int64_t left(std::uint64_t turn, std::int64_t per_turn) {
    if (turn == turn_) return left_;
    const auto turns = static_cast<std::int64_t>(std::min<std::uint64_t>(turn - turn_, turns_max));
    left_ = std::min(per_turn, left_ + turns * per_turn);
    turn_ = turn;
    return left_;
  }
  void spend(std::uint64_t work) { left_ -= static_cast<std::int64_t>(work); }

 private:
  static constexpr std::uint64_t turns_max = 1U << 20;  // any debt is paid by then

  std::int64_t left_ = 0;
  std::uint64_t turn_ = 0;  ///< in which so much was left
};

}  // namespace muster::server
