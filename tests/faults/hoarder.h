#pragma once

#include <string>

namespace muster::faults {

/// On `count` connections asks for all that there is to ask for, of each kind on as many, and reads
/// no reply. Reports `hoarded`, with how many were closed, when the server takes nothing more from
/// any of them for a while; then waits for the end of its input.
void hoard(const std::string& address, int count);

}  // namespace muster::faults
