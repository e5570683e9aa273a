#pragma once

#include <string>
#include <vector>

#include "muster/inspect.h"
#include "output.h"

namespace musterctl {

/// Who is in a group, who is missing, and who waits for whom, in lines for people.
std::vector<std::string> explain(const muster::GroupReport& report);
/// Who waits for a key, and for which.
std::string explain(const muster::WaiterInfo& waiter);

/// Whether anybody waits in the group.
bool has_waiters(const muster::GroupReport& report);

/// The same for programs.
Json json_of(const muster::GroupReport& report);
Json json_of(const muster::WaiterInfo& waiter);

}  // namespace musterctl
