#pragma once

#include <string>
#include <vector>

namespace tools {

/// Variables of the environment that begin with "MUSTER_" although Muster knows none of that name.
/// Those that Kubernetes sets for a service that is called "muster", and those that the library
/// muster-runtime reads, are left out.
///
/// known    the names that somebody reads
/// returns  their names, each with what was probably meant
std::vector<std::string> unknown_variables(const std::vector<std::string>& known);

}  // namespace tools
