#pragma once

#include <string_view>

#include "muster/error.h"

namespace muster::base {

/// How the ranks of an error with this code are introduced, such as "missing".
std::string_view role_of_ranks(ErrorCode code);

/// What somebody who meets this error can do; empty where the fields say all there is to say.
std::string_view advice_for(const Error& error);

}  // namespace muster::base
