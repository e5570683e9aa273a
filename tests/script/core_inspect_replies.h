#pragma once

#include <vector>

#include "core_client.h"
#include "wire/reply.h"

namespace muster::script {

// How scripts show members, and what operators are told.

void tell_members(Line& line, const wire::MembersReply& reply, const Processes& processes);
void tell_members(Line& line, const std::vector<wire::MemberEntry>& entries,
                  const Processes& processes);
void tell_sessions(Line& line, const wire::SessionsReply& reply, const Processes& processes);
void tell_groups(Line& line, const wire::GroupsReply& reply);
void tell_group(Line& line, const wire::InspectGroupReply& reply, const Processes& processes);
void tell_waiters(Line& line, const wire::WaitersReply& reply, const Processes& processes);
void tell_settings(Line& line, const wire::SettingsReply& reply);
void tell_history(Line& line, const wire::HistoryReply& reply, const Processes& processes);
void tell_name_spaces(Line& line, const wire::NameSpacesReply& reply);

}  // namespace muster::script
