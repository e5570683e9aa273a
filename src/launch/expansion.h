#pragma once

#include <string>
#include <string_view>

#include "launch/variables.h"

namespace muster::launch {

/// An argument of the program with variables put in, as a shell would; as Python's
/// os.path.expanduser and os.path.expandvars do.
///
/// "$NAME" and "${NAME}" anywhere, "~" alone or before the first "/". What names no variable stays
/// as it is: "$NOPE", "$$", a "$" at the end, "${unclosed", "~user". A value is not looked at
/// again.
std::string expanded(std::string_view argument, const Variables& environment);

}  // namespace muster::launch
