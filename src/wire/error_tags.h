#pragma once

#include <cstdint>

namespace muster::wire {

/// The fields of an error. The numbers are part of the protocol and never change.
enum class ErrorTag : std::uint8_t {
  operation = 1,           ///< bytes
  group = 2,               ///< bytes
  epoch = 3,               ///< u64
  round = 4,               ///< u64
  elapsed = 5,             ///< duration
  decided_by = 6,          ///< bytes
  decided_by_rank = 7,     ///< i32
  decided_by_timeout = 8,  ///< duration
  where = 9,               ///< bytes
  rank = 10,               ///< one RankReport; repeated
  rank_ranges = 11,        ///< list of i32 first, i32 last
  cause = 12,              ///< u8
  expected = 13,           ///< u64
  actual = 14,             ///< u64
  limit = 15,              ///< u64
  detail = 16,             ///< bytes
  ends_session = 17,       ///< bool; only in the event session_ended
};

/// The optional fields of a RankReport.
enum class RankTag : std::uint8_t {
  cause = 1,  ///< u8
};

}  // namespace muster::wire
