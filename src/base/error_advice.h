#pragma once

#include <string_view>

#include "muster/error.h"

namespace muster::base {

/// How the ranks of an error with this code are introduced, such as "missing".
std::string_view role_of_ranks(ErrorCode code);

/// What somebody who meets this error in this call can do; empty where its fields or its detail say
/// so. A detail says so itself where that depends on what was refused.
std::string_view advice_for(const Error& error);

}  // namespace muster::base
