#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/turns.h"

namespace muster::runtime {

/// What stands in a signal file.
struct SignalRecord {
  enum class Phase : std::uint8_t { working = 0, done = 1, failed = 2 };

  // Of which call: equal on all ranks.
  std::string job;
  detail::Shared shared = detail::Shared::node;
  std::uint64_t call = 0;

  // Who works first.
  std::int32_t world_rank = -1;  ///< -1: it is not known
  std::uint32_t pid = 0;
  std::string host;
  bool is_locked = true;  ///< false: the file system has no locks, so nothing shows that it lives

  Phase phase = Phase::working;
  std::uint64_t told_count = 0;  ///< how often its work has told of progress
  std::string text;              ///< the last progress, or why it has failed
  std::string readers;  ///< a byte for each rank: whether it has read how the work has ended

  bool is_of_same_call(const SignalRecord& other) const {
    return job == other.job && shared == other.shared && call == other.call;
  }
};

inline constexpr char unread_mark = '-';
inline constexpr char read_mark = '+';
inline constexpr std::size_t signal_bytes_max = std::size_t{1} << 20;

std::string encode(const SignalRecord& record);
/// none: it is none, or not complete.
std::optional<SignalRecord> decode_signal(std::string_view bytes);
/// Where a rank marks that it has read.
std::size_t mark_position(int rank);
/// The ranks that have not read how the work has ended.
std::vector<int> unread_ranks(const SignalRecord& record);
/// Whether a file begins as one of these.
bool begins_as_signal(std::string_view bytes);

}  // namespace muster::runtime
