#include "wire/reply.h"

#include "wire/reply_body.h"

namespace muster::wire {

MUSTER_INSTANTIATE_REPLY(EmptyReply);
MUSTER_INSTANTIATE_REPLY(AppliedReply);
MUSTER_INSTANTIATE_REPLY(ValueReply);
MUSTER_INSTANTIATE_REPLY(NumberReply);
MUSTER_INSTANTIATE_REPLY(PresenceReply);
MUSTER_INSTANTIATE_REPLY(ValuesReply);
MUSTER_INSTANTIATE_REPLY(ListReply);
MUSTER_INSTANTIATE_REPLY(FormedReply);
MUSTER_INSTANTIATE_REPLY(MembersReply);
MUSTER_INSTANTIATE_REPLY(RoundReply);
MUSTER_INSTANTIATE_REPLY(ReceiveReply);
MUSTER_INSTANTIATE_REPLY(RecoverReply);

}  // namespace muster::wire
