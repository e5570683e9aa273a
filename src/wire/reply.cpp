#include "wire/reply.h"

#include "wire/codec.h"
#include "wire/failure.h"

namespace muster::wire {
namespace {

template <class Reply>
void append(std::string& out, const Reply& reply) {
  Encoder encoder(out);
  fields(encoder, reply);
}

}  // namespace

void append_body(std::string& out, const EmptyReply& reply) { append(out, reply); }
void append_body(std::string& out, const AppliedReply& reply) { append(out, reply); }
void append_body(std::string& out, const ValueReply& reply) { append(out, reply); }
void append_body(std::string& out, const NumberReply& reply) { append(out, reply); }
void append_body(std::string& out, const PresenceReply& reply) { append(out, reply); }
void append_body(std::string& out, const ValuesReply& reply) { append(out, reply); }
void append_body(std::string& out, const ListReply& reply) { append(out, reply); }
void append_body(std::string& out, const FormedReply& reply) { append(out, reply); }
void append_body(std::string& out, const MembersReply& reply) { append(out, reply); }
void append_body(std::string& out, const RoundReply& reply) { append(out, reply); }
void append_body(std::string& out, const ReceiveReply& reply) { append(out, reply); }
void append_body(std::string& out, const RecoverReply& reply) { append(out, reply); }
void append_body(std::string& out, const StatusReply& reply) { append(out, reply); }
void append_body(std::string& out, const SessionsReply& reply) { append(out, reply); }
void append_body(std::string& out, const GroupsReply& reply) { append(out, reply); }
void append_body(std::string& out, const InspectGroupReply& reply) { append(out, reply); }
void append_body(std::string& out, const WaitersReply& reply) { append(out, reply); }

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

template Result<EmptyReply> decode_body(std::string_view body);
template Result<AppliedReply> decode_body(std::string_view body);
template Result<ValueReply> decode_body(std::string_view body);
template Result<NumberReply> decode_body(std::string_view body);
template Result<PresenceReply> decode_body(std::string_view body);
template Result<ValuesReply> decode_body(std::string_view body);
template Result<ListReply> decode_body(std::string_view body);
template Result<FormedReply> decode_body(std::string_view body);
template Result<MembersReply> decode_body(std::string_view body);
template Result<RoundReply> decode_body(std::string_view body);
template Result<ReceiveReply> decode_body(std::string_view body);
template Result<RecoverReply> decode_body(std::string_view body);
template Result<StatusReply> decode_body(std::string_view body);
template Result<SessionsReply> decode_body(std::string_view body);
template Result<GroupsReply> decode_body(std::string_view body);
template Result<InspectGroupReply> decode_body(std::string_view body);
template Result<WaitersReply> decode_body(std::string_view body);

}  // namespace muster::wire
