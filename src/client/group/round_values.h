#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

// What the reply of a decided collective gives this rank. Hosts index by rank what they get, so the
// count is checked here, whatever the server says.

namespace muster::client {

/// The values of all ranks; `count` is what the collective promises.
///
/// errors  protocol_error (no such reply, or another count of values)
Result<std::vector<std::string>> values_of(std::string_view body, std::size_t count);

/// The one value that came; the root, which gets none back, keeps its `own`.
///
/// errors  protocol_error
Result<std::string> value_of(std::string body, std::optional<std::string> own);

}  // namespace muster::client
