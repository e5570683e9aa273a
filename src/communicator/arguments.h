#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include "client/failure.h"
#include "muster/communicator.h"
#include "muster/result.h"
#include "muster/store_options.h"

namespace muster::communicator {

/// What a call was given, as far as all kinds of communicators refuse the same.
struct Arguments {
  DataType type;
  ReduceOp operation = ReduceOp::sum;
  int rank = 0;  ///< a root or a peer
  std::size_t count = 0;
  std::size_t parts = 1;  ///< of so many elements each that the larger buffer has
};

/// invalid_argument, if there is something to refuse.
std::optional<Error> refusal_of(const Arguments& arguments, int world_size);

/// Longer waits are this long: so the clock can count until their end.
inline constexpr Duration longest_timeout{std::chrono::hours(24 * 365)};

/// `given`, or the default when none was given.
///
/// errors  invalid_argument (negative)
inline Result<Duration> timeout_or(Duration given, Duration by_default) {
  if (given == default_timeout) return std::min(by_default, longest_timeout);
  if (given < Duration::zero()) return client::invalid_argument("timeout: not negative");
  return std::min(given, longest_timeout);
}

/// For how long an abort may take; negative: no time.
inline Duration patience_of(Duration given) {
  return std::clamp(given, Duration::zero(), longest_timeout);
}

inline Error moved_from(std::string_view operation) {
  Error error = client::failure(ErrorCode::closed, "the object was moved from");
  error.operation = operation;
  return error;
}

/// What every call of a forked child is told.
inline Error forked() {
  return client::failure(ErrorCode::forked, "the communicator belongs to the parent process");
}

}  // namespace muster::communicator
