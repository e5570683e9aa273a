#include <algorithm>

#include "base/monotonic_now.h"
#include "core/session/failure.h"
#include "server/service.h"
#include "wire/error_body.h"
#include "wire/frame.h"
#include "wire/request.h"

// A turn begins with what a connection reports: bytes, that it has drained, its end. Every
// complete frame that the bytes hold is handled, then the turn ends and the replies leave.
//
// A peer that asks faster than it takes the answers is held: its frames wait, stored, until little
// is queued behind the reply that is being sent. One large reply alone holds nothing up: a rank may
// pass barriers while it downloads. Bytes are read meanwhile, since they prove that it lives, but
// only so many.

namespace muster::server {
namespace {

constexpr std::uint64_t hold_bytes = 1U << 20;        // waiting: no more frames are handled
constexpr std::uint64_t continue_bytes = 256 * 1024;  // waiting: they are again
constexpr std::uint64_t held_bytes_max = 64 * 1024;   // of frames that wait: no more is read

}  // namespace

void Service::received(ConnectionId id, std::string_view bytes) {
  now_ = base::monotonic_now();
  Peer* const peer = peers_.find(id);
  if (peer == nullptr) return;
  if (peer->hello) {
    received_hello(*peer, bytes);
  } else {
    peer->frames.give(bytes);
    if (!cut_frames(id)) apply(core::Heard{id});
  }
  end_turn();
}

/// Any frame may end the connection that it came on.
///
/// returns  whether there was one
bool Service::cut_frames(ConnectionId id) {
  const Peer* const before = peers_.find(id);
  const std::uint64_t before_bytes = before == nullptr ? 0 : before->outbox.waiting_bytes();
  for (bool any = false;; any = true) {
    Peer* const peer = peers_.find(id);
    if (peer == nullptr) return any;
    if (is_behind(*peer)) return hold(*peer, before_bytes), any;
    Result<FrameAssembler::Next> next = peer->frames.next();
    if (!next) return break_off(*peer, next.error()), true;
    if (std::holds_alternative<FrameAssembler::Incomplete>(*next)) {
      peer->connection->read_into(peer->frames.room());
      return any;
    }
    if (const auto* frame = std::get_if<wire::Frame>(&*next)) {
      handle(id, *frame, peer->frames.memory_of_frame());
    } else {
      handle_unstorable(id, std::get<FrameAssembler::Unstorable>(*next));
    }
  }
}

bool Service::is_behind(Peer& peer) {
  const std::uint64_t limit_bytes = peer.is_held ? continue_bytes : hold_bytes;
  if (peer.outbox.waiting_bytes() <= limit_bytes) return false;
  peer.outbox.flush();
  return peer.outbox.waiting_bytes() > limit_bytes;
}

/// What waited before these frames were handled, it has not asked for with them.
void Service::hold(Peer& peer, std::uint64_t before_bytes) {
  const std::uint64_t waiting_bytes = peer.outbox.waiting_bytes();
  if (!peer.is_held) peer.asked_bytes = waiting_bytes - std::min(waiting_bytes, before_bytes);
  peer.is_held = true;
  peer.connection->read_into({});
  peer.frames.keep();
  if (peer.frames.stored_bytes() >= held_bytes_max) peer.connection->pause_reading();
}

void Service::drained(ConnectionId id) {
  now_ = base::monotonic_now();
  const Peer* const peer = peers_.find(id);
  if (peer != nullptr && peer->is_held) {
    apply(core::Heard{id});  // it takes bytes: it lives, although it may not be read from
  }
  go_on(id);
  end_turn();
}

/// With a peer that takes its replies: parts of a long one may follow, and its frames that wait.
void Service::go_on(ConnectionId id) {
  if (Peer* const peer = peers_.find(id)) look_at_unsent(*peer);
  Peer* const peer = peers_.find(id);
  if (peer == nullptr) return;
  mark_dirty(*peer);
  if (!peer->is_held || is_behind(*peer)) return;
  peer->is_held = false;
  peer->asked_bytes = 0;
  peer->connection->resume_reading();
  peer->frames.give({});
  cut_frames(id);
}

void Service::closed(ConnectionId id, net::CloseCause cause, const std::string& detail) {
  now_ = base::monotonic_now();
  Peer* const peer = peers_.find(id);
  if (peer == nullptr) return;
  const bool has_session = !peer->session.empty();
  if (log_.is_on()) {
    log_.line(has_session ? LogLevel::info : LogLevel::debug,
              name_of(*peer) + ": ended: " + detail);
  }
  take_out(*peer);
  control_accepting();
  const bool by_peer = cause == net::CloseCause::by_peer;
  apply(core::Disconnected{id,
                           by_peer ? core::DisconnectCause::closed : core::DisconnectCause::lost});
  end_turn();
}

void Service::handle(ConnectionId id, const wire::Frame& frame, core::ChargedMemory* memory) {
  const wire::FrameType type = frame.header.type;
  if (type == wire::FrameType::request) return handle_request(id, frame, memory);
  if (type == wire::FrameType::goodbye) return apply(core::Goodbye{id});
  const auto read = wire::decode_ids(frame, request_ids_);
  if (!read) return break_off(*peers_.find(id), read.error());
  if (type == wire::FrameType::acknowledge) return apply(core::Acknowledged{id, &request_ids_});
  if (type == wire::FrameType::abandon) return apply(core::Abandoned{id, &request_ids_});
  apply(core::Heartbeat{id, frame.header.id, &request_ids_});
}

/// memory  in which the frame lies alone; null: it does not
void Service::handle_request(ConnectionId id, const wire::Frame& frame,
                             core::ChargedMemory* memory) {
  const Result<void> read = wire::decode_request(frame, request_);
  if (read) return apply(core::Requested{id, &request_, memory});
  if (read.error().code != ErrorCode::unsupported) {
    return break_off(*peers_.find(id), read.error());
  }
  if (wire::decode_ids(frame, request_ids_)) apply(core::Acknowledged{id, &request_ids_});
  reply_error(id, frame.header.id, read.error());
}

void Service::handle_unstorable(ConnectionId id, const FrameAssembler::Unstorable& frame) {
  apply(core::Acknowledged{id, &frame.acknowledged});
  Error error;
  error.code = ErrorCode::resource_exhausted;
  error.operation = wire::name_of(static_cast<wire::Operation>(frame.header.code));
  error.decided_by = "server";
  if (frame.is_of_system) {
    error.detail = core::out_of_system_memory;
  } else {
    error.limit = frame.limit_bytes;
    error.actual = frame.used_bytes;
    error.detail = "memory_bytes_max is reached";
  }
  reply_error(id, frame.header.id, error);
}

void Service::reply_error(ConnectionId id, std::uint64_t request_id, const Error& error) {
  core::SendReply reply;
  reply.connection = id;
  reply.request_id = request_id;
  reply.code = static_cast<std::uint16_t>(error.code);
  wire::append_error(reply.head, error);
  carry_out(reply);
}

/// Ends the connection of a peer that breaks the protocol, and tells it why.
void Service::break_off(Peer& peer, const Error& why) {
  const ConnectionId id = peer.id;
  log_.bounded_line(LogLevel::warning, name_of(peer) + ": closed: " + why.message(), now_);
  wire::Event last;
  last.kind = wire::EventKind::session_ended;
  last.error = why;
  last.error.decided_by = "server";
  auto body = std::make_shared<std::string>();
  wire::append_event(*body, last);
  core::SendEvent event{id, last.kind, std::move(body)};
  carry_out(event);
  let_leave(take_out(peer));
  apply(core::Disconnected{id, core::DisconnectCause::lost});
}

}  // namespace muster::server
