#include "support/environment.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "muster/log.h"
#include "support/nearest.h"
#include "support/quotes.h"

namespace tools {
namespace {

constexpr std::string_view prefix = "MUSTER_";

bool is_of_kubernetes(std::string_view name) {
  if (name.ends_with("_PORT") || name.find("_SERVICE_") != name.npos) return true;
  const std::size_t port = name.find("_PORT_");
  if (port == name.npos) return false;
  const std::string_view rest = name.substr(port + 6);
  return !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
}

/// Which its tests set for themselves.
bool is_of_tests(std::string_view name) {
  return name.starts_with("MUSTER_TEST_") || name == "MUSTER_PLANTED";
}

/// Of the library muster-runtime; whoever starts a program from a job's process passes them on.
bool is_of_runtime(std::string_view name) {
  return name == "MUSTER_STORE" || name == "MUSTER_SHARED_FS";
}

}  // namespace

std::vector<std::string> unknown_variables(const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with(prefix) || is_of_kubernetes(name) || is_of_tests(name) ||
        is_of_runtime(name))
      continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    names.push_back(muster::base::looks_secret(name)
                        ? in_quotes(name)
                        : muster::printable(name.substr(0, 64)) + did_you_mean(name, known));
  }
  return names;
}

}  // namespace tools
