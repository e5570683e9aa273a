#pragma once

#include <string>

#include "muster/error.h"

namespace muster::net {

inline Error failure(ErrorCode code, std::string detail) {
  Error error;
  error.code = code;
  error.detail = std::move(detail);
  return error;
}

/// What the system says about an errno, such as "Connection refused".
std::string text_of_errno(int number);

}  // namespace muster::net
