// What the imagined server says: words in, bytes out.

#include "client_runner.h"
#include "core_server_options.h"
#include "wire/reply.h"

namespace muster::script {
namespace {

template <class Reply>
std::string body_of(const Reply& reply) {
  std::string body;
  wire::append_body(body, reply);
  return body;
}

wire::RoundReply round_reply(Arguments& arguments, std::vector<std::string>& storage) {
  wire::RoundReply reply;
  for (const std::string& value : arguments.list("values")) storage.push_back(bytes_of(value));
  for (const std::string& value : storage) reply.values.push_back(value);
  return reply;
}

std::string recover_body(Arguments& arguments) {
  wire::RecoverReply reply;
  const auto state = arguments.named("state").value_or("none");
  std::vector<std::string> storage;
  if (state == "not_called") reply.state = wire::RoundState::not_called;
  if (state == "failed") {
    reply.state = wire::RoundState::failed;
    reply.error = Error{};
    reply.error->code = code_of(arguments.named("code").value_or("timed_out"));
  }
  if (state == "done") {
    reply.state = wire::RoundState::done;
    reply.round = round_reply(arguments, storage);
  }
  for (const std::string& next : arguments.list("next")) {
    reply.next_sequences.push_back(static_cast<std::uint64_t>(number_of(next)));
  }
  return body_of(reply);
}

std::string reply_body(const Asked& asked, Arguments& arguments) {
  const wire::RequestBody& body = asked.owned.request.body;
  const std::string value = arguments.bytes("value").value_or("");
  switch (wire::operation_of(body)) {
    case wire::operation<wire::Set>: return body_of(wire::AppliedReply{true, {}});
    case wire::operation<wire::Get>:
    case wire::operation<wire::Take>:
    case wire::operation<wire::QueuePop>: return body_of(wire::ValueReply{value});
    case wire::operation<wire::Add>:
    case wire::operation<wire::Append>:
    case wire::operation<wire::Remove>:
    case wire::operation<wire::Send>:
    case wire::operation<wire::ExpireData>:
      return body_of(wire::NumberReply{arguments.number("number").value_or(1)});
    case wire::operation<wire::Exists>: return body_of(wire::PresenceReply{{true}});
    case wire::operation<wire::Join>:
    case wire::operation<wire::Regroup>: {
      wire::FormedReply reply;
      reply.epoch = static_cast<std::uint64_t>(arguments.number("epoch").value_or(8));
      reply.world_size = 3;
      return body_of(reply);
    }
    case wire::operation<wire::Receive>: {
      const auto& request = std::get<wire::Receive>(body);
      return body_of(wire::ReceiveReply{request.sequence, request.codec, value});
    }
    case wire::operation<wire::CollectiveCall>: {
      std::vector<std::string> storage;
      return body_of(round_reply(arguments, storage));
    }
    case wire::operation<wire::Recover>: return recover_body(arguments);
    default: return body_of(wire::EmptyReply{});
  }
}

Error error_from(Arguments& arguments) {
  Error error;
  error.code = code_of(arguments.next("an error's name"));
  error.detail = arguments.bytes("detail").value_or("");
  error.decided_by = arguments.bytes("by").value_or("server");
  const auto number = [&](std::string_view name) {
    return static_cast<std::uint64_t>(arguments.number(name).value_or(0));
  };
  error.epoch = number("epoch");
  error.round = number("round");
  error.expected = number("expected");
  error.actual = number("actual");
  for (const std::string& rank : arguments.list("ranks")) {
    const int number_of_rank = static_cast<int>(number_of(rank));
    error.rank_ranges.push_back({number_of_rank, number_of_rank});
  }
  return error;
}

std::string frame_of(wire::FrameHeader header, const std::string& body) {
  std::string bytes;
  wire::append_frame(bytes, header, body);
  return bytes;
}

wire::FrameHeader header_of(wire::FrameType type, std::uint16_t code, std::uint64_t id) {
  wire::FrameHeader header;
  header.type = type;
  header.code = code;
  header.id = id;
  return header;
}

}  // namespace

ErrorCode code_of(std::string_view name) {
  for (std::uint16_t number = 1; number < 100; ++number) {
    const auto code = static_cast<ErrorCode>(number);
    if (muster::name_of(code) == name) return code;
  }
  throw ScriptError("no such error: " + std::string(name));
}

wire::ResumeToken script_token() {
  wire::ResumeToken token;
  token.bytes.fill(0x77);
  return token;
}

std::string hello_bytes(Arguments& arguments, Processes& processes, std::uint16_t status) {
  const core::Options options = server_options(arguments, processes);
  wire::ServerHello hello;
  hello.status = status;
  hello.resumed = arguments.flag("resumed");
  hello.detail = arguments.bytes("detail").value_or("");
  hello.incarnation = static_cast<std::uint64_t>(arguments.number("incarnation").value_or(100));
  hello.session_id = static_cast<std::uint64_t>(arguments.number("session").value_or(1));
  hello.token = script_token();
  hello.limits = options.limits;
  hello.hosting_process = options.host.process;
  hello.hosting_rank = options.host.rank;
  hello.gives_back = arguments.flag("gives_back");
  std::string bytes;
  wire::append_server_hello(bytes, hello);
  return bytes;
}

std::string reply_bytes(const Asked& asked, std::uint64_t id, Arguments& arguments) {
  return frame_of(header_of(wire::FrameType::reply, 0, id), reply_body(asked, arguments));
}

std::string cancel_reply_bytes(std::uint64_t id, Arguments& arguments) {
  const wire::CancelTakeReply reply{arguments.flag("given_back")};
  return frame_of(header_of(wire::FrameType::reply, 0, id), body_of(reply));
}

std::string error_bytes(std::uint64_t id, Arguments& arguments) {
  const Error error = error_from(arguments);
  std::string body;
  wire::append_error(body, error);
  return frame_of(header_of(wire::FrameType::reply, static_cast<std::uint16_t>(error.code), id),
                  body);
}

std::string event_bytes(Arguments& arguments) {
  wire::Event event;
  const std::string kind = arguments.next("a kind of event");
  if (kind == "rank_left") event.kind = wire::EventKind::rank_left;
  if (kind == "interrupted") event.kind = wire::EventKind::interrupted;
  if (kind == "session_ended") event.kind = wire::EventKind::session_ended;
  if (arguments.flag("of_session")) event.ends_session = true;
  if (arguments.flag("of_connection")) event.ends_session = false;
  event.error = error_from(arguments);
  event.epoch = event.error.epoch;
  std::string body;
  wire::append_event(body, event);
  return frame_of(header_of(wire::FrameType::event, static_cast<std::uint16_t>(event.kind), 0),
                  body);
}

}  // namespace muster::script
