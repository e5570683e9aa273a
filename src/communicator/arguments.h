#pragma once

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
};

/// invalid_argument, if there is something to refuse.
std::optional<Error> refusal_of(const Arguments& arguments, int world_size);

/// `given`, or the default when none was given.
///
/// errors  invalid_argument (negative)
inline Result<Duration> timeout_or(Duration given, Duration by_default) {
  if (given == default_timeout) return by_default;
  if (given < Duration::zero()) return client::invalid_argument("timeout: not negative");
  return given;
}

inline Error moved_from(std::string_view operation) {
  Error error = client::failure(ErrorCode::closed, "the object was moved from");
  error.operation = operation;
  return error;
}

}  // namespace muster::communicator
