#pragma once

#include <string_view>

#include "muster/inspected.h"
#include "wire/reply.h"

// What operators are told, as the structs of muster/inspected.h: those who have asked by the
// protocol, and those who look at a server in their own process.

namespace muster::wire {

MemberInfo public_form(const MemberEntry& entry);
SessionInfo public_form(const SessionEntry& entry);
GroupInfo public_form(const GroupEntry& entry);
WaiterInfo public_form(const WaiterEntry& entry);
NamespaceInfo public_form(const NameSpaceEntry& entry);
GroupReport public_form(const InspectGroupReply& reply, std::string_view name);
GroupEvent public_form(const HistoryRecord& record);

}  // namespace muster::wire
