#include "wire/reply_body.h"
#include "wire/settings.h"

// What operators are told.

namespace muster::wire {

MUSTER_INSTANTIATE_REPLY(StatusReply);
MUSTER_INSTANTIATE_REPLY(SessionsReply);
MUSTER_INSTANTIATE_REPLY(GroupsReply);
MUSTER_INSTANTIATE_REPLY(InspectGroupReply);
MUSTER_INSTANTIATE_REPLY(WaitersReply);
MUSTER_INSTANTIATE_REPLY(NameSpacesReply);
MUSTER_INSTANTIATE_REPLY(HistoryReply);
MUSTER_INSTANTIATE_REPLY(SettingsReply);

}  // namespace muster::wire
