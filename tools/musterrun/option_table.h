#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/options.h"

namespace musterrun {

/// What the options have said that is no part of LaunchOptions.
struct Given {
  muster::launch::LaunchOptions options;
  std::string process_count;  ///< empty: not given
  std::string node_count;     ///< empty: not given
  bool is_module = false;
  bool is_command = false;
  std::vector<std::string> notices;
};

/// One option. An empty `value` makes it a flag.
struct OptionRow {
  std::string names;  ///< separated by commas; each with dashes is also known with underscores
  std::string value;  ///< how its value is shown in the help
  std::string help;
  /// returns  what is wrong with the value; empty: nothing
  std::function<std::string(Given& given, const std::string& value)> take;
};

const std::vector<OptionRow>& option_rows();

}  // namespace musterrun
