#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "muster/error.h"
#include "wire/operation_table.h"

namespace muster::core {

/// How requests end: `ok`, with an error of the server, or unanswered.
///
/// An error that stands nowhere here counts as `internal`.
inline constexpr auto outcome_errors = std::to_array<ErrorCode>({
    ErrorCode::invalid_argument,    ErrorCode::too_large,
    ErrorCode::not_a_number,        ErrorCode::out_of_range,
    ErrorCode::unsupported,         ErrorCode::busy,
    ErrorCode::not_found,           ErrorCode::timed_out,
    ErrorCode::cancelled,           ErrorCode::closed,
    ErrorCode::resource_exhausted,  ErrorCode::unavailable,
    ErrorCode::session_expired,     ErrorCode::fenced,
    ErrorCode::protocol_error,      ErrorCode::permission_denied,
    ErrorCode::rank_lost,           ErrorCode::rank_left,
    ErrorCode::rank_in_use,         ErrorCode::group_mismatch,
    ErrorCode::group_closed,        ErrorCode::stale_epoch,
    ErrorCode::collective_mismatch, ErrorCode::codec_mismatch,
    ErrorCode::sequence_gap,        ErrorCode::expired,
    ErrorCode::interrupted,         ErrorCode::internal,
});
/// Nobody was answered: the client gave up, or its session ended.
inline constexpr std::size_t outcome_abandoned = outcome_errors.size() + 1;
inline constexpr std::size_t outcomes_count = outcome_abandoned + 1;

/// "ok", the error's name, or "abandoned".
inline std::string_view outcome_name(std::size_t outcome) {
  if (outcome == 0) return "ok";
  if (outcome == outcome_abandoned) return "abandoned";
  return name_of(outcome_errors[outcome - 1]);
}

/// The index of the operation's row in the table.
constexpr std::size_t row_of(wire::Operation operation) {
  return static_cast<std::size_t>(&wire::facts_of(operation) - wire::operation_facts.data());
}

/// How many requests have ended, and how. One that is answered again, to a client that has come
/// back, has ended once. Plain data.
class Outcomes {
 public:
  /// code  0, or an ErrorCode
  void count(wire::Operation operation, std::uint16_t code) {
    auto& of_operation = counts_[row_of(operation)];
    if (code == 0) [[likely]] {
      ++of_operation[0];
    } else {
      count_error(of_operation, code);
    }
  }
  void count_abandoned(wire::Operation operation) {
    ++counts_[row_of(operation)][outcome_abandoned];
  }
  /// operation  the index of its row
  std::uint64_t of(std::size_t operation, std::size_t outcome) const {
    return counts_[operation][outcome];
  }

 private:
  using OfOperation = std::array<std::uint64_t, outcomes_count>;

  [[gnu::noinline]] static void count_error(OfOperation& of_operation, std::uint16_t code) {
    std::size_t outcome = 1;
    while (outcome < outcome_errors.size() &&
           static_cast<std::uint16_t>(outcome_errors[outcome - 1]) != code) {
      ++outcome;
    }
    ++of_operation[outcome];
  }

  std::array<OfOperation, wire::operations_count> counts_{};
};

}  // namespace muster::core
