#include <utility>

#include "base/monotonic_now.h"
#include "server/service.h"
#include "wire/frame.h"
#include "wire/request.h"

// Replies of one turn are queued first and leave together: who got something is written to once, in
// the order in which they got it, when the turn ends, or so many have got something that the first
// of them would leave the caches. Of long replies one part leaves, and the next ones in the loop's
// next turns, so that others are served between. What a socket does not take is charged to the
// quota and follows when the peer takes more; a peer that takes too little is let go, at the end of
// the turn.

namespace muster::server {
namespace {

constexpr std::size_t copied_head_bytes_max = 16 * 1024;  // longer heads are sent where they are
constexpr std::uint64_t waiting_bytes_max = 8U << 20;     // behind the reply that is being sent
constexpr std::size_t flushed_together_max = 32;          // what they were sent is in a cache still
constexpr Duration stall_time_when_short = std::chrono::milliseconds(500);

}  // namespace

void Service::apply(const core::Event& event) {
  const bool is_short = settings_.is_short_of_memory && settings_.is_short_of_memory();
  engine_.quota().set_short(is_short);
  if (is_short != was_short_) tell_of_memory(is_short);
  for (core::Effect& effect : engine_.apply(event, now_)) {
    std::visit([this](auto& one) { carry_out(one); }, effect);
    if (dirty_.size() >= flushed_together_max) flush_dirty();
  }
}

void Service::tell_of_memory(bool is_short) {
  was_short_ = is_short;
  if (is_short) {
    log_.line(LogLevel::warning, "the system gives no more memory: writes are refused");
  } else {
    log_.line(LogLevel::info, "there is memory again: writes are taken");
  }
}

void Service::carry_out(core::SendHello& effect) {
  Peer* const peer = peers_.find(effect.connection);
  if (peer == nullptr) return;
  scratch_.clear();
  wire::append_server_hello(scratch_, *effect.hello);
  peer->connection->send(scratch_);
  mark_dirty(*peer);
  if (effect.hello->status != 0) return;
  peer->session = "session " + std::to_string(effect.hello->session_id);
  if (!log_.is_on()) return;
  const char* const how = effect.hello->resumed ? " resumed from " : " begun from ";
  log_.line(LogLevel::info,
            peer->session + " of " + peer->process + how + peer->connection->peer());
}

void Service::carry_out(core::SendReply& effect) {
  Peer* const peer = peers_.find(effect.connection);
  if (peer == nullptr) return;
  wire::FrameHeader header;
  header.type = wire::FrameType::reply;
  header.code = effect.code;
  header.id = effect.request_id;
  net::SharedBytes tail;
  if (effect.tail) tail = {effect.tail->view(), effect.tail};
  const std::uint64_t body_bytes = effect.head.size() + effect.value.size() + tail.view.size();
  if (effect.head.size() <= copied_head_bytes_max && body_bytes <= Outbox::part_bytes_max) {
    header.body_bytes = static_cast<std::uint32_t>(body_bytes);
    peer->outbox.send(header, effect.head, effect.value);
    if (effect.tail) peer->outbox.send(std::move(tail));
  } else {
    effect.head += effect.value;
    const auto head = core::make_payload_always(engine_.quota(), std::move(effect.head));
    peer->outbox.send_in_parts(header, {head->view(), head}, std::move(tail));
  }
  mark_dirty(*peer);
}

void Service::carry_out(core::SendEvent& effect) {
  Peer* const peer = peers_.find(effect.connection);
  if (peer == nullptr) return;
  wire::FrameHeader header;
  header.type = wire::FrameType::event;
  header.code = static_cast<std::uint16_t>(effect.kind);
  send(*peer, header, *effect.body);
}

void Service::carry_out(core::SendHeartbeatReply& effect) {
  Peer* const peer = peers_.find(effect.connection);
  if (peer == nullptr) return;
  wire::FrameHeader header;
  header.type = wire::FrameType::heartbeat_reply;
  header.id = effect.number;
  send(*peer, header, {});
}

void Service::carry_out(core::SendGoodbye& effect) {
  Peer* const peer = peers_.find(effect.connection);
  if (peer == nullptr) return;
  scratch_.clear();
  wire::append_goodbye(scratch_, effect.reason);
  peer->connection->send(scratch_);
  mark_dirty(*peer);
}

void Service::carry_out(core::Close& effect) {
  Peer* const peer = peers_.find(effect.connection);
  if (peer == nullptr) return;
  if (peer->session.empty()) {
    log_.bounded_line(LogLevel::debug, name_of(*peer) + ": refused: " + effect.reason->detail,
                      now_);
  } else if (log_.is_on()) {
    log_.line(LogLevel::info, name_of(*peer) + ": closed: " + effect.reason->detail);
  }
  let_leave(take_out(*peer));
}

void Service::carry_out(core::Log& effect) { log_.line(effect.level, effect.line); }

void Service::send(Peer& peer, wire::FrameHeader header, std::string_view body) {
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  peer.outbox.send(header, body);
  mark_dirty(peer);
}

void Service::mark_dirty(Peer& peer) {
  if (peer.is_dirty) return;
  peer.is_dirty = true;
  dirty_.push_back(peer.id);
}

/// Ends a turn: everything that was queued leaves, and the timer is right.
void Service::end_turn() {
  if (stopping_ && std::exchange(sessions_may_have_ended_, false)) continue_stopping();
  flush_dirty();
  while (!overfull_.empty()) {
    for (const ConnectionId id : std::exchange(overfull_, {})) {
      if (Peer* const peer = peers_.find(id)) {
        lose(*peer, "it does not take its replies: more than 8 MiB wait");
      }
    }
    flush_dirty();
  }
  arm_timer();
}

/// Also in the midst of `apply`, so it has no events for the engine.
void Service::flush_dirty() {
  for (const ConnectionId id : dirty_) {
    Peer* const peer = peers_.find(id);
    if (peer == nullptr) continue;
    peer->is_dirty = false;
    peer->outbox.flush();
    const bool goes_on = peer->outbox.wants_part() || peer->is_held;
    const bool is_stalled = peer->connection->stalled_since() != base::far_future;
    if (goes_on && !is_stalled) continue_soon(*peer);
    look_at_unsent(*peer);
  }
  dirty_.clear();
}

/// In the next turn of the loop, so that others have theirs before. One that is stalled continues
/// when it has drained.
void Service::continue_soon(const Peer& peer) {
  continuing_.push_back(peer.id);
  if (continuing_.size() > 1) return;
  loop_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && !self->closed_) self->continue_some();
  });
}

void Service::continue_some() {
  now_ = base::monotonic_now();
  for (const ConnectionId id : std::exchange(continuing_, {})) go_on(id);
  end_turn();
}

/// Charges what waits to be sent, and sees whether the peer takes it.
void Service::look_at_unsent(Peer& peer) {
  const std::uint64_t own_bytes = peer.connection->unsent_own_bytes();
  if (own_bytes > peer.charged_bytes) {
    engine_.quota().charge_always(own_bytes - peer.charged_bytes);
  } else {
    engine_.quota().release(peer.charged_bytes - own_bytes);
  }
  peer.charged_bytes = own_bytes;
  if (peer.connection->stalled_since() == base::far_future) return;
  if (peer.outbox.waiting_bytes() > waiting_bytes_max + peer.asked_bytes) {
    return overfull_.push_back(peer.id);
  }
  if (peer.is_slow) return;
  peer.is_slow = true;
  slow_.push_back(peer.id);
}

void Service::close_slow_peers() {
  const core::Quota& quota = engine_.quota();
  const bool is_short = quota.used_bytes() > quota.limit_bytes() + quota.limit_bytes() / 8;
  const std::vector<ConnectionId> slow = std::exchange(slow_, {});
  for (const ConnectionId id : slow) {
    Peer* const peer = peers_.find(id);
    if (peer == nullptr) continue;
    const base::Instant since = peer->connection->stalled_since();
    peer->is_slow = since != base::far_future;
    if (!peer->is_slow) continue;
    if (now_ - since >= stall_time_max) {
      lose(*peer, "it has taken nothing of its replies for 10 s");
    } else if (is_short && now_ - since >= stall_time_when_short) {
      lose(*peer, "it does not take its replies, and memory is short");
    } else {
      slow_.push_back(id);
    }
  }
}

/// Ends a connection that still seems to stand. The session has its whole timeout to come back:
/// nobody has said that its process is gone.
void Service::lose(Peer& peer, const std::string& why) {
  const ConnectionId id = peer.id;
  log_.bounded_line(LogLevel::warning, name_of(peer) + ": closed: " + why, now_);
  take_out(peer)->connection->close();
  apply(core::Disconnected{id, core::DisconnectCause::lost});
}

/// The peer is no longer one; its connection is still open.
std::unique_ptr<Peer> Service::take_out(Peer& peer) {
  newcomers_.remove(peer);
  peer.connection->read_into({});
  engine_.quota().release(std::exchange(peer.charged_bytes, 0));
  sessions_may_have_ended_ = true;
  return peers_.remove(peer.id);
}

void Service::let_leave(std::unique_ptr<Peer> peer) {
  peer->connection->close_after_flush(leaving_time);
  leaving_.push_back(std::move(peer->connection));
}

std::string Service::name_of(const Peer& peer) {
  return peer.connection->peer() + (peer.session.empty() ? "" : ", " + peer.session);
}

}  // namespace muster::server
