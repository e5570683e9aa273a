#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/inspect.h"
#include "output.h"

namespace musterctl {

/// Who is in a group, who is missing, and who waits for whom, in lines for people.
///
/// hung_for  as of `hangs`
std::vector<std::string> explain(const muster::GroupReport& report, muster::Duration hung_for);
/// Who waits for a key, and for which.
std::string explain(const muster::WaiterInfo& waiter);

/// Whether anybody waits in the group.
bool has_waiters(const muster::GroupReport& report);

/// How long somebody waits already for ranks that were to come: in a round, for its confirmation,
/// in a regroup, or to join, but not as standby. Who waits for an object or a key, or as standby,
/// is idle: nothing says that anybody owes it anything.
///
/// returns  of the oldest such wait; none: nobody is held up
std::optional<muster::Duration> held_up_for(const muster::GroupReport& report);
/// Whether that is at least `hung_for`.
bool hangs(const muster::GroupReport& report, muster::Duration hung_for);

/// The same for programs.
Json json_of(const muster::GroupReport& report, muster::Duration hung_for);
Json json_of(const muster::WaiterInfo& waiter);

}  // namespace musterctl
