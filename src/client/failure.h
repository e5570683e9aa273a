#pragma once

#include <string>

#include "base/failure.h"

namespace muster::client {

/// An error that the client itself decides.
inline Error failure(ErrorCode code, std::string detail) {
  Error error = base::failure(code, std::move(detail));
  error.decided_by = "client";
  return error;
}

inline Error invalid_argument(std::string detail) {
  return failure(ErrorCode::invalid_argument, std::move(detail));
}

}  // namespace muster::client
