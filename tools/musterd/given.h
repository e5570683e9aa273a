#pragma once

#include <istream>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "flags.h"

namespace musterd {

/// The values of one setting and where they were found, for messages.
struct Given {
  std::vector<std::string> values;
  std::string where;
};
using GivenByName = std::map<std::string, Given>;

Exit wrong(const std::string& why);

/// Reads lines of the form "name = value".
///
/// path     of the file, for messages
/// returns  text by name, not looked at
std::variant<GivenByName, Exit> read_settings(std::istream& file, const std::string& path);

/// What is wrong with the values together, or with an address, by the names that were typed.
Exit refusal_of(const Configuration& configuration, const muster::Error& error);

/// Understands what was given.
std::variant<Configuration, Exit> configuration_of(const GivenByName& chosen);

}  // namespace musterd
