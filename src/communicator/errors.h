#pragma once

#include <string_view>

#include "client/failure.h"

namespace muster::communicator {

inline Error moved_from(std::string_view operation) {
  Error error = client::failure(ErrorCode::closed, "the object was moved from");
  error.operation = operation;
  return error;
}

/// The error of every call in a forked child.
inline Error forked() {
  return client::failure(
      ErrorCode::forked,
      "the communicator belongs to the parent process; create another one in the child");
}

}  // namespace muster::communicator
