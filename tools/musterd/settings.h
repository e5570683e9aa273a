#pragma once

#include <functional>
#include <string>
#include <vector>

#include "flags.h"

namespace musterd {

/// One thing that can be set: as a flag `--name`, as MUSTER_NAME, as `name = value` in a file.
struct Setting {
  enum class Kind { value, values, on_off };
  /// returns  whether the values are understood
  using Apply = std::function<bool(const std::vector<std::string>& values, Configuration& to)>;

  std::string name;
  Kind kind = Kind::value;
  std::string form;      ///< of its value, such as "DURATION"
  std::string valid;     ///< what it can be, behind "is no"
  std::string fallback;  ///< as the help shows it
  std::string help;
  Apply apply;
  /// Whether the server has it under this name: then it says whether it can change while it runs.
  bool is_of_server = false;

  std::string flag() const { return "--" + name; }
  std::string variable() const;
};

const std::vector<Setting>& settings();

/// Null when there is none of that name.
const Setting* find_setting(const std::string& name);

/// Variables of the environment that begin with "MUSTER_" although neither musterd nor musterctl
/// reads them, each with what was probably meant.
std::vector<std::string> unread_variables();

}  // namespace musterd
