#include "again.h"

#include <array>
#include <utility>

#include "support/decoded.h"
#include "wire/error_body.h"
#include "wire/hello.h"
#include "wire/request.h"
#include "wire/writer.h"

namespace muster::golden {

const std::array<Again, 21> replies_again = {
    reply_again<wire::EmptyReply>,      reply_again<wire::AppliedReply>,
    reply_again<wire::ValueReply>,      reply_again<wire::NumberReply>,
    reply_again<wire::PresenceReply>,   reply_again<wire::ValuesReply>,
    reply_again<wire::ListReply>,       reply_again<wire::FormedReply>,
    reply_again<wire::MembersReply>,    reply_again<wire::RoundReply>,
    reply_again<wire::ReceiveReply>,    reply_again<wire::RecoverReply>,
    reply_again<wire::StatusReply>,     reply_again<wire::SessionsReply>,
    reply_again<wire::GroupsReply>,     reply_again<wire::InspectGroupReply>,
    reply_again<wire::WaitersReply>,    reply_again<wire::NameSpacesReply>,
    reply_again<wire::HistoryReply>,    reply_again<wire::SettingsReply>,
    reply_again<wire::CancelTakeReply>,
};
Result<wire::Frame> whole_frame(std::string_view bytes) {
  Result<std::optional<wire::Frame>> cut = wire::cut_frame(bytes, 1U << 20);
  if (!cut.has_value()) return std::move(cut).error();
  if (*cut && (*cut)->body.size() + wire::frame_header_bytes == bytes.size()) return **cut;
  Error error;
  error.code = ErrorCode::protocol_error;
  error.detail = "not one whole frame";
  return error;
}

void tell_true_length(std::string& frame) {
  if (frame.size() < wire::frame_header_bytes) return;
  const auto body_bytes = static_cast<std::uint32_t>(frame.size() - wire::frame_header_bytes);
  wire::Writer(frame).patch_u32(0, body_bytes);
}

Result<std::string> client_hello_again(std::string_view bytes) {
  const auto decoded = wire::decode_client_hello(bytes);
  if (!decoded) return decoded.error();
  std::string out;
  wire::append_client_hello(out, *decoded);
  return out;
}

Result<std::string> server_hello_again(std::string_view bytes) {
  const auto decoded = wire::decode_server_hello(bytes);
  if (!decoded) return decoded.error();
  std::string out;
  wire::append_server_hello(out, *decoded);
  return out;
}

Result<std::string> request_again(std::string_view bytes) {
  const Result<wire::Frame> frame = whole_frame(bytes);
  if (!frame) return frame.error();
  const Result<wire::Request> decoded = test::decoded_request(*frame);
  if (!decoded) return decoded.error();
  std::string out;
  wire::append_request(out, *decoded);
  return out;
}

Result<std::string> ids_again(std::string_view bytes) {
  const Result<wire::Frame> frame = whole_frame(bytes);
  if (!frame) return frame.error();
  const auto decoded = test::decoded_ids(*frame);
  if (!decoded) return decoded.error();
  if (frame->header.type == wire::FrameType::request) return Error{};
  std::string out;
  wire::append_ids(out, frame->header.type, frame->header.id, *decoded);
  return out;
}

Result<std::string> goodbye_again(std::string_view bytes) {
  const Result<wire::Frame> frame = whole_frame(bytes);
  if (!frame) return frame.error();
  const auto reason = wire::decode_goodbye(*frame);
  if (!reason) return reason.error();
  std::string out;
  wire::append_goodbye(out, *reason);
  return out;
}

Result<std::string> echo_again(std::string_view bytes) {
  const Result<wire::Frame> frame = whole_frame(bytes);
  if (!frame) return frame.error();
  const auto token = wire::decode_echo(*frame);
  if (!token) return token.error();
  std::string out;
  wire::append_echo(out, *token);
  return out;
}

Result<std::string> error_again(std::string_view bytes) {
  const Result<wire::Frame> frame = whole_frame(bytes);
  if (!frame) return frame.error();
  const auto decoded = wire::decode_error(frame->header.code, frame->body);
  if (!decoded) return Error{};
  std::string body;
  wire::append_error(body, *decoded);
  std::string out;
  wire::append_frame(out, frame->header, body);
  return out;
}

Result<std::string> event_again(std::string_view bytes) {
  const Result<wire::Frame> frame = whole_frame(bytes);
  if (!frame) return frame.error();
  const auto decoded = wire::decode_event(frame->header.code, frame->body);
  if (!decoded) return decoded.error();
  std::string body;
  wire::append_event(body, *decoded);
  std::string out;
  wire::append_frame(out, frame->header, body);
  return out;
}

Result<std::string> plain_again(std::string_view bytes) {
  const Result<wire::Frame> frame = whole_frame(bytes);
  if (!frame) return frame.error();
  std::string out;
  wire::append_frame(out, frame->header, frame->body);
  return out;
}

Again again_from_client(const wire::FrameHeader& header) {
  switch (header.type) {
    case wire::FrameType::request: return request_again;
    case wire::FrameType::acknowledge:
    case wire::FrameType::abandon:
    case wire::FrameType::heartbeat: return ids_again;
    case wire::FrameType::goodbye: return goodbye_again;
    case wire::FrameType::echo: return echo_again;
    case wire::FrameType::reply:
    case wire::FrameType::heartbeat_reply:
    case wire::FrameType::event:
    case wire::FrameType::part: break;
  }
  return nullptr;
}

Again again_from_server(const wire::FrameHeader& header, std::size_t expected_reply) {
  switch (header.type) {
    case wire::FrameType::reply:
      return header.code == 0 ? replies_again[expected_reply] : error_again;
    case wire::FrameType::event: return event_again;
    case wire::FrameType::goodbye: return goodbye_again;
    case wire::FrameType::part:
    case wire::FrameType::heartbeat_reply: return plain_again;
    default: return nullptr;
  }
}

}  // namespace muster::golden
