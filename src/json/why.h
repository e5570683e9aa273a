#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/inspect.h"
#include "muster/types.h"

namespace muster::json {

/// Who is in a group, who is missing, and who waits for whom, in lines for people.
///
/// hung_for  as of `hangs`
std::vector<std::string> explain(const GroupReport& report, Duration hung_for);
/// Who waits for a key, and for which.
std::string explain(const WaiterInfo& waiter);

/// What happened, without the group and the time.
std::string explain(const GroupEvent& entry);

/// Whether it waits for a key or a queue, not in a group.
bool waits_for_keys(const WaiterInfo& waiter);

/// Whether anybody waits in the group.
bool has_waiters(const GroupReport& report);

/// How long somebody waits already for ranks that were to come: in a round, for its confirmation,
/// in a regroup, or to join, but not as standby. Who waits for an object or a key, or as standby,
/// is idle: nothing says that anybody owes it anything.
///
/// returns  of the oldest such wait; none: nobody is held up
std::optional<Duration> held_up_for(const GroupReport& report);
/// Whether that is at least `hung_for`.
bool hangs(const GroupReport& report, Duration hung_for);

}  // namespace muster::json
