#pragma once

#include <string>

#include "base/failure.h"

namespace muster::wire {

using base::failure;

inline Error protocol_error(std::string detail) {
  return failure(ErrorCode::protocol_error, std::move(detail));
}

}  // namespace muster::wire
