// What the server says. A connection on which it breaks the protocol is given up and the session
// resumed on another: nothing is lost by that. Only when that happens again before anything good
// came do the calls fail with `protocol_error`.

#include "client/protocol/protocol.h"
#include "wire/operation_table.h"

namespace muster::client::protocol {
namespace {

Error protocol_error(std::string detail) {
  Error error;
  error.code = ErrorCode::protocol_error;
  error.detail = std::move(detail);
  return error;
}

bool ends_session(ErrorCode code) {
  return code == ErrorCode::session_expired || code == ErrorCode::fenced ||
         code == ErrorCode::server_restarted;
}

}  // namespace

void Protocol::on(const Received& input, Instant now) {
  if (link_.phase() != Link::Phase::greeting && !established()) return;
  heard_ = now;
  inbox_.push(input.bytes);
  if (link_.phase() == Link::Phase::greeting) read_hello(now);
  read_frames(now);
  inbox_.settle();
}

void Protocol::read_frames(Instant now) {
  while (established()) {
    auto frame = wire::cut_frame(inbox_.rest(), server_.limits.reply_bytes_max());
    if (!frame) return break_off(std::move(frame).error(), now);
    if (!*frame) break;
    inbox_.consume(wire::frame_header_bytes + (*frame)->body.size());
    if (Result<void> read = read_frame(**frame, now); !read) {
      return break_off(std::move(read).error(), now);
    }
  }
  send_queued(now);
}

Result<void> Protocol::read_frame(const wire::Frame& frame, Instant now) {
  switch (frame.header.type) {
    case wire::FrameType::part: return read_part(frame);
    case wire::FrameType::reply: return read_reply(frame, now);
    case wire::FrameType::event: return read_event(frame, now);
    case wire::FrameType::heartbeat_reply: read_heartbeat_reply(frame.header.id); return {};
    case wire::FrameType::goodbye: read_goodbye(frame, now); return {};
    case wire::FrameType::request:
    case wire::FrameType::acknowledge:
    case wire::FrameType::abandon:
    case wire::FrameType::heartbeat: break;
  }
  return protocol_error("a server sends no frames of type " +
                        std::to_string(static_cast<int>(frame.header.type)));
}

/// Heartbeats are answered between the parts, however long they take together.
Result<void> Protocol::read_part(const wire::Frame& frame) {
  const std::uint64_t id = frame.header.id;
  if (parts_of_ != 0 && parts_of_ != id)
    return protocol_error("the parts of two replies are mixed");
  parts_of_ = id;
  if (calls_.find(id) == nullptr) {
    std::string().swap(parts_);  // it has been given up
    return {};
  }
  if (parts_.size() + frame.body.size() > server_.limits.reply_bytes_max()) {
    return protocol_error("the parts of a reply are longer than is allowed");
  }
  parts_.append(frame.body);
  return {};
}

Result<void> Protocol::read_reply(const wire::Frame& frame, Instant now) {
  std::uint64_t id = frame.header.id;
  std::string body;
  if (parts_of_ == id) {
    parts_of_ = 0;
    body = std::exchange(parts_, {});
  }
  Call* const found = calls_.find(id);
  if (found == nullptr) {
    read_late_reply(id);
    return {};
  }
  if (!found->is_sent()) return protocol_error("a reply to a request that was not sent");
  if (body.size() + frame.body.size() > server_.limits.reply_bytes_max()) {
    return protocol_error("the parts of a reply are longer than is allowed");
  }
  body.append(frame.body);
  Result<std::string> reply = std::string();
  if (frame.header.code == 0) {
    reply = std::move(body);
  } else {
    auto error = wire::decode_error(frame.header.code, body);
    if (!error) return protocol_error("an error that cannot be read");
    reply = *std::move(error);
  }
  link_.prove();
  broken_off_count_ = 0;
  Call& call = *found;
  const std::uint64_t serial = call.serial;
  const bool is_only_sending = !call.is_repeated;
  // What was done is also learned by asking again.
  const bool is_asked_again = call.operation == wire::operation<wire::Recover>;
  const bool is_release = (call.is_barrier || is_asked_again) && reply.has_value();
  if (wire::is_kept(call.operation)) letters_.acknowledge(id);
  complete(call, std::move(reply), Fate::answered, now);
  calls_.remove(call);
  // The answer to a repetition may have been under way before the repetition arrived.
  if (is_only_sending) confirm(serial);
  if (is_release) send_acknowledgements();  // the barrier's confirmation
  return {};
}

/// Whoever asked has been told otherwise. Replies that were abandoned or acknowledged may still
/// come, once more after a resume; any other is one that the server may let go.
void Protocol::read_late_reply(std::uint64_t id) {
  if (letters_.has(id) || id == 0 || id > last_id_) return;
  wire::append_ids(outgoing(), wire::FrameType::abandon, 0, {id});
  ++last_serial_;
}

Result<void> Protocol::read_event(const wire::Frame& frame, Instant now) {
  auto event = wire::decode_event(frame.header.code, frame.body);
  if (!event) return std::move(event).error();
  link_.prove();
  switch (event->kind) {
    case wire::EventKind::epoch_broken:
    case wire::EventKind::rank_left: emit(Notify{*std::move(event)}); break;
    case wire::EventKind::session_ended: {
      Error& why = event->error;
      if (why.where.empty()) why.where = options_.where;
      if (why.decided_by.empty()) why.decided_by = "server";
      if (ends_session(why.code)) {
        end_session(std::move(why), now);
      } else {
        log(LogLevel::warning, options_.where + " closes the connection: " + why.detail);
      }
      break;
    }
    default: break;  // of a newer server
  }
  return {};
}

void Protocol::read_heartbeat_reply(std::uint64_t number) {
  const auto heartbeat = lease_.answered(number);
  if (!heartbeat) return;
  link_.prove();
  broken_off_count_ = 0;
  confirm(heartbeat->serial);
}

void Protocol::read_goodbye(const wire::Frame& frame, Instant now) {
  const auto reason = wire::decode_goodbye(frame);
  parting_ = "the server has stopped: " + std::string(reason ? *reason : "?");
  Error why = error_of(ErrorCode::unavailable, parting_);
  blame_host(why, LossCause::closed, now);
  emit(Disconnect{});
  end_all_calls(why, now);
  link_.distrust();
  lose_connection(std::move(why), now);
}

void Protocol::break_off(Error error, Instant now) {
  Error why = error_of(ErrorCode::protocol_error, std::move(error.detail));
  why.actual = error.actual;
  why.limit = error.limit;
  emit(Disconnect{});
  if (++broken_off_count_ > 1) end_all_calls(why, now);
  link_.distrust();
  lose_connection(std::move(why), now);
}

}  // namespace muster::client::protocol
