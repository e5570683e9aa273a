#include "wire/reply.h"

#include "wire/codec.h"
#include "wire/failure.h"

namespace muster::wire {

template <class Reply>
void append_body(std::string& out, const Reply& reply) {
  Encoder encoder(out);
  fields(encoder, reply);
}

template <class Reply>
Result<Reply> decode_body(std::string_view body) {
  Reader reader(body);
  Decoder decoder(reader);
  Reply reply;
  fields(decoder, reply);
  skip_optional_fields(reader);
  if (!reader.ok()) return protocol_error("the bytes are no reply to this operation");
  return reply;
}

#define MUSTER_INSTANTIATE(Reply)                        \
  template void append_body(std::string&, const Reply&); \
  template Result<Reply> decode_body(std::string_view)

MUSTER_INSTANTIATE(EmptyReply);
MUSTER_INSTANTIATE(AppliedReply);
MUSTER_INSTANTIATE(ValueReply);
MUSTER_INSTANTIATE(NumberReply);
MUSTER_INSTANTIATE(PresenceReply);
MUSTER_INSTANTIATE(ValuesReply);
MUSTER_INSTANTIATE(ListReply);
MUSTER_INSTANTIATE(FormedReply);
MUSTER_INSTANTIATE(MembersReply);
MUSTER_INSTANTIATE(RoundReply);
MUSTER_INSTANTIATE(ReceiveReply);
MUSTER_INSTANTIATE(RecoverReply);
MUSTER_INSTANTIATE(StatusReply);
MUSTER_INSTANTIATE(SessionsReply);
MUSTER_INSTANTIATE(GroupsReply);
MUSTER_INSTANTIATE(InspectGroupReply);
MUSTER_INSTANTIATE(WaitersReply);
MUSTER_INSTANTIATE(NameSpacesReply);

#undef MUSTER_INSTANTIATE

}  // namespace muster::wire
