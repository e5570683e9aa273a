#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tools {

/// What somebody probably meant who wrote `given`.
///
/// returns  such as "; did you mean \"--grace\"?", or nothing where none of `known` is near
std::string did_you_mean(std::string_view given, const std::vector<std::string>& known);

}  // namespace tools
