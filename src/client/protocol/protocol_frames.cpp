// What the server says. A connection on which it breaks the protocol is given up and the session
// resumed on another: nothing is lost by that. Only when that happens again before anything good
// came do the calls fail with `protocol_error`.

#include "client/protocol/protocol.h"
#include "wire/error_body.h"

namespace muster::client::protocol {
namespace {

/// An older server does not say whether the session is over. With these codes it is.
bool ends_session(const wire::Event& event) {
  const ErrorCode code = event.error.code;
  return event.ends_session.value_or(
      code == ErrorCode::session_expired || code == ErrorCode::fenced ||
      code == ErrorCode::server_restarted || code == ErrorCode::permission_denied);
}

}  // namespace

void Protocol::on(const Received& input, Instant now) {
  if (connection_.stands() && !input.of_attempt) {
    liveness_.hear(now);
    incoming_.push(input.bytes);
    read_frames(now);
    incoming_.settle();
  } else if (connection_.phase() == ConnectionState::Phase::greeting) {
    if (!connection_.stands()) liveness_.hear(now);
    incoming_.push_of_attempt(input.bytes);
    if (read_hello(now)) {  // what came behind it is in `incoming_`
      read_frames(now);
      incoming_.settle();
    }
    incoming_.settle_attempt();
  }
}

/// returns  whether the session stands on this connection now
bool Protocol::read_hello(Instant now) {
  auto hello = incoming_.take_hello();
  if (!hello.has_value()) {
    meet_stranger(std::move(hello).error(), now);
    return false;
  }
  if (!*hello) return false;
  if ((*hello)->status == 0) return accept(**std::move(hello), now);
  refuse(**hello, now);
  return false;
}

void Protocol::read_frames(Instant now) {
  while (connection_.stands()) {
    auto frame = incoming_.take_frame(session_.frame_limits().reply_bytes_max);
    if (!frame.has_value()) return break_off(std::move(frame).error(), now);
    if (!*frame) break;
    if (Result<void> read = read_frame(**frame, now); !read) {
      return break_off(std::move(read).error(), now);
    }
  }
  requests_.send_queued(now);
}

Result<void> Protocol::read_frame(const wire::Frame& frame, Instant now) {
  switch (frame.header.type) {
    case wire::FrameType::part:  // heartbeats are answered between the parts, however many
      return incoming_.keep_part(frame, requests_.find(frame.header.id) != nullptr,
                                 session_.frame_limits().reply_bytes_max);
    case wire::FrameType::reply: return read_reply(frame, now);
    case wire::FrameType::event: return read_event(frame, now);
    case wire::FrameType::heartbeat_reply:
      if (const auto heartbeat = lease_.answered(frame.header.id)) {
        connection_.prove();
        liveness_.prove();
        broken_off_count_ = 0;
        requests_.confirm(heartbeat->serial);
        // Other bytes may be older than the silence.
        const bool ends_attempt = connection_.is_doubted() && connection_.trust(heartbeat->sent);
        if (ends_attempt) effects_.add(Disconnect{Disconnect::Which::attempt});
      }
      return {};
    case wire::FrameType::goodbye: read_goodbye(frame, now); return {};
    case wire::FrameType::request:
    case wire::FrameType::acknowledge:
    case wire::FrameType::abandon:
    case wire::FrameType::heartbeat:
    case wire::FrameType::echo: break;
  }
  return protocol_error("a server sends no frames of type " +
                        std::to_string(static_cast<int>(frame.header.type)));
}

Result<void> Protocol::read_reply(const wire::Frame& frame, Instant now) {
  const std::uint64_t id = frame.header.id;
  std::string body = incoming_.take_parts(id);
  Call* const call = requests_.find(id);
  if (call == nullptr) {
    requests_.drop_reply(id);
    return {};
  }
  if (!call->is_sent()) return protocol_error("a reply to a request that was not sent");
  if (body.size() + frame.body.size() > session_.frame_limits().reply_bytes_max) {
    return too_many_parts();
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
  connection_.prove();
  liveness_.prove();
  broken_off_count_ = 0;
  requests_.answer(*call, std::move(reply), now);
  return {};
}

Result<void> Protocol::read_event(const wire::Frame& frame, Instant now) {
  auto event = wire::decode_event(frame.header.code, frame.body);
  if (!event) return std::move(event).error();
  connection_.prove();
  switch (event->kind) {
    case wire::EventKind::epoch_broken:
    case wire::EventKind::interrupted:
    case wire::EventKind::rank_left: effects_.add(Notify{*std::move(event)}); break;
    case wire::EventKind::session_ended: {
      Error& why = event->error;
      if (why.where.empty()) why.where = session_.options().where;
      if (why.decided_by.empty()) why.decided_by = "server";
      if (ends_session(*event)) {
        end_session(std::move(why), now);
      } else {
        effects_.log(LogLevel::warning,
                     session_.options().where + " closes the connection: " + why.detail);
      }
      break;
    }
    default: break;  // of a newer server
  }
  return {};
}

void Protocol::read_goodbye(const wire::Frame& frame, Instant now) {
  const auto reason = wire::decode_goodbye(frame);
  const std::string parting = "the server has stopped: " + std::string(reason ? *reason : "?");
  session_.server_parted(parting);
  Error why = session_.error_of(ErrorCode::unavailable, parting);
  session_.blame_host(why, LossCause::closed, liveness_.silence(now));
  effects_.add(Disconnect{Disconnect::Which::standing});
  requests_.end_passing(why, now);
  connection_.distrust();
  lose_connection(std::move(why), now);
}

void Protocol::break_off(Error error, Instant now) {
  Error why = session_.error_of(ErrorCode::protocol_error, std::move(error.detail));
  why.actual = error.actual;
  why.limit = error.limit;
  effects_.add(Disconnect{Disconnect::Which::standing});
  if (++broken_off_count_ > 1) requests_.end_passing(why, now);
  connection_.distrust();
  lose_connection(std::move(why), now);
}

}  // namespace muster::client::protocol
