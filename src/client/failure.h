#pragma once

#include <string>

#include "muster/error.h"

namespace muster::client {

/// An error that the client itself decides.
inline Error failure(ErrorCode code, std::string detail) {
  Error error;
  error.code = code;
  error.decided_by = "client";
  error.detail = std::move(detail);
  return error;
}

inline Error invalid_argument(std::string detail) {
  return failure(ErrorCode::invalid_argument, std::move(detail));
}

}  // namespace muster::client
