#pragma once

#include <string>

#include "base/failure.h"

namespace muster::net {

using base::failure;

/// What the system says about an errno, such as "Connection refused".
std::string text_of_errno(int number);

}  // namespace muster::net
