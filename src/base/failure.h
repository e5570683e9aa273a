#pragma once

#include <string>
#include <utility>

#include "muster/error.h"

namespace muster::base {

/// An error with its code and its detail. Who it concerns and where it happened is added where that
/// is known.
inline Error failure(ErrorCode code, std::string detail) {
  Error error;
  error.code = code;
  error.detail = std::move(detail);
  return error;
}

}  // namespace muster::base
