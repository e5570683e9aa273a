#include "wire/reply_body.h"

// What operators are told.

namespace muster::wire {

MUSTER_INSTANTIATE_REPLY(StatusReply);
MUSTER_INSTANTIATE_REPLY(SessionsReply);
MUSTER_INSTANTIATE_REPLY(GroupsReply);
MUSTER_INSTANTIATE_REPLY(InspectGroupReply);
MUSTER_INSTANTIATE_REPLY(WaitersReply);
MUSTER_INSTANTIATE_REPLY(NameSpacesReply);

}  // namespace muster::wire
