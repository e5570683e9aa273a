#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "muster/error.h"

namespace muster::runtime {

/// An error of the environment, `detail`: what is wrong, and what to do.
inline Error environment_error(std::string_view operation, std::string detail) {
  Error error;
  error.code = ErrorCode::environment;
  error.operation = operation;
  error.decided_by = "client";
  error.detail = std::move(detail);
  return error;
}

}  // namespace muster::runtime
