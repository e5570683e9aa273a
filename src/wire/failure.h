#pragma once

#include <string>

#include "muster/error.h"

namespace muster::wire {

inline Error failure(ErrorCode code, std::string detail) {
  Error error;
  error.code = code;
  error.detail = std::move(detail);
  return error;
}

inline Error protocol_error(std::string detail) {
  return failure(ErrorCode::protocol_error, std::move(detail));
}

}  // namespace muster::wire
