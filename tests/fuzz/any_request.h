#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "wire/request.h"

namespace muster::fuzz {

/// The keys that can be in a table; two more are refused.
inline constexpr std::array<std::string_view, 4> keys = {"a", "b", "c", "ab"};

/// The namespaces that clients connect to.
inline constexpr std::array<std::string_view, 2> name_spaces = {"", "n"};

/// A request of any operation with any fields, few of them absurd. Its views last for ever.
///
/// epochs  those that there are, or were
wire::RequestBody any_request(Input& input, const std::vector<std::uint64_t>& epochs);

}  // namespace muster::fuzz
