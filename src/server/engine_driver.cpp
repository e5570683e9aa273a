#include "server/engine_driver.h"

#include <utility>
#include <vector>

#include "base/text.h"
#include "server/tcpstore/peer_replies.h"
#include "wire/error_body.h"
#include "wire/hello.h"
#include "wire/operation_table.h"

namespace muster::server {
namespace {

constexpr std::size_t copied_head_bytes_max = 16 * 1024;  // longer heads are sent where they are
constexpr std::uint64_t header_bytes = wire::frame_header_bytes;

void tell_of_memory(const ServerLog& log, bool is_short) {
  if (is_short) {
    log.line(LogLevel::warning, "the system gives no more memory: writes are refused");
  } else {
    log.line(LogLevel::info, "there is memory again: writes are taken");
  }
}

}  // namespace

EngineDriver::EngineDriver(core::Engine& engine, const Settings& settings,
                           ConnectionManager& connections, SendScheduler& sender,
                           Holdings& holdings, ServerLog& log)
    : engine_(engine),
      settings_(settings),
      connections_(connections),
      sender_(sender),
      holdings_(holdings),
      log_(log) {}

/// Connections may be let go as the event's effects are carried out. The engine is told of their
/// ends afterwards, which does not change whether the event's request was postponed.
void EngineDriver::apply(const core::Event& event) {
  postponed_bytes_ = 0;
  apply_one(event);
  tell_of_lost();
}

void EngineDriver::apply_one(const core::Event& event) {
  const bool is_short = settings_.is_short_of_memory && settings_.is_short_of_memory();
  engine_.memory().all.set_short(is_short);
  if (std::exchange(was_short_, is_short) != is_short) tell_of_memory(log_, is_short);
  std::vector<core::Effect>& effects = engine_.apply(event, now_);
  work_ += engine_.work();
  for (core::Effect& effect : effects) {
    std::visit([this](auto& one) { carry_out(one); }, effect);
    if (sender_.flush_if_many()) keep_within_memory();
  }
}

/// What answers requests that were parked cannot wait. When it passes the end of the reserve, the
/// one with most has to go, now: in the midst of an event's effects.
void EngineDriver::keep_within_memory() {
  while (engine_.memory().room.is_passed()) {
    connections_.close_leaving();
    Peer* const heaviest = holdings_.heaviest();
    if (heaviest == nullptr) return;
    let_go(*heaviest, "it does not take its replies, and memory is out");
    lost_.push_back({heaviest->id, {}});
  }
}

void EngineDriver::tell_of_lost() {
  while (!lost_.empty()) {
    const Lost lost = std::move(lost_.back());
    lost_.pop_back();
    apply_one(core::Disconnected{lost.id, core::DisconnectCause::lost, lost.refused});
  }
}

// Effects. What is for a connection that is over is for nobody.

void EngineDriver::carry_out(core::SendHello& effect) {
  Peer* const peer = connections_.peers().find(effect.connection);
  if (peer == nullptr) return;
  if (peer->guest == nullptr) {
    scratch_.clear();
    wire::append_server_hello(scratch_, *effect.hello);
    peer->connection->send(scratch_);
    sender_.mark_dirty(*peer);
  }
  if (effect.hello->status != 0) return;
  peer->charge_to(*effect.quota);
  peer->session = "session " + std::to_string(effect.hello->session_id);
  const LogLevel level = peer->is_observer ? LogLevel::debug : LogLevel::info;
  if (!log_.admits(peer->unit->name, level, now_)) return;
  const char* const how = effect.hello->resumed ? " resumed from " : " begun from ";
  log_.line(level, peer->session + " of " + peer->process + how + peer->connection->peer());
}

void EngineDriver::carry_out(core::SendReply& effect) {
  Peer* const peer = connections_.peers().find(effect.connection);
  if (peer == nullptr) return;
  if (peer->guest == nullptr) return send_reply(*peer, effect);
  tcpstore::PeerReplies out(*peer, sender_);
  const auto why = peer->guest->conversation.answered(effect, out);
  if (!why) return;
  // Its client knows no errors: the connection ends.
  if (log_.admits(peer->unit->name, LogLevel::warning, now_)) {
    log_.line(LogLevel::warning, name_of(*peer) + ": closed: " + why->message());
  }
  std::string refused = name_of(*peer) + ": " + why->message();
  connections_.close_after_flush(*peer);
  lost_.push_back({peer->id, std::move(refused)});
}

void EngineDriver::send_reply(Peer& peer, core::SendReply& effect) {
  wire::FrameHeader header;
  header.type = wire::FrameType::reply;
  header.code = effect.code;
  header.id = effect.request_id;
  net::SharedBytes tail;
  const bool has_tail = effect.tail != nullptr;
  // Nothing of it stays with the effect, which stands until the next event.
  if (has_tail) tail = {effect.tail->view(), nullptr, effect.owns_tail};
  tail.keep_alive = std::move(effect.tail);
  const std::uint64_t body_bytes = effect.head.size() + effect.value.size() + tail.view.size();
  if (effect.head.size() <= copied_head_bytes_max && body_bytes <= Outbox::part_bytes_max) {
    header.body_bytes = static_cast<std::uint32_t>(body_bytes);
    peer.outbox.send(header, effect.head, effect.value);
    if (has_tail) peer.outbox.send(std::move(tail));
    const std::uint64_t reply_bytes = has_tail ? Outbox::reply_bytes : 0;
    return sender_.mark_dirty(
        peer, header_bytes + effect.head.size() + effect.value.size() + reply_bytes);
  }
  effect.head += effect.value;
  const auto head = core::make_payload_always(engine_.memory().replies, std::move(effect.head));
  peer.outbox.send_in_parts(header, {head->view(), head, true}, std::move(tail));
  sender_.mark_dirty(peer, Outbox::reply_bytes);
}

void EngineDriver::carry_out(core::SendEvent& effect) {
  if (Peer* const peer = connections_.peers().find(effect.connection)) {
    send_event(*peer, effect.kind, *effect.body);
  }
}

void EngineDriver::send_event(Peer& peer, wire::EventKind kind, std::string_view body) {
  if (peer.guest != nullptr) return;
  wire::FrameHeader header;
  header.type = wire::FrameType::event;
  header.code = static_cast<std::uint16_t>(kind);
  send(peer, header, body);
}

void EngineDriver::carry_out(core::SendHeartbeatReply& effect) {
  Peer* const peer = connections_.peers().find(effect.connection);
  if (peer == nullptr) return;
  wire::FrameHeader header;
  header.type = wire::FrameType::heartbeat_reply;
  header.id = effect.number;
  send(*peer, header, {});
}

void EngineDriver::carry_out(core::SendGoodbye& effect) {
  Peer* const peer = connections_.peers().find(effect.connection);
  if (peer == nullptr || peer->guest != nullptr) return;
  scratch_.clear();
  wire::append_goodbye(scratch_, effect.reason);
  peer->connection->send(scratch_);
  sender_.mark_dirty(*peer);
}

void EngineDriver::carry_out(core::Close& effect) {
  Peer* const peer = connections_.peers().find(effect.connection);
  if (peer == nullptr) return;
  if (peer->session.empty()) {
    ++counts().refused;
    const bool is_full = effect.reason->code == ErrorCode::busy && effect.reason->limit != 0;
    const LogLevel level = is_full ? LogLevel::warning : LogLevel::debug;
    if (log_.admits(peer->unit->name, level, now_)) {
      log_.line(level, name_of(*peer) + ": refused: " + effect.reason->detail);
    }
  } else if (effect.reason->code == ErrorCode::protocol_error) {
    ++counts().breaches;
    if (log_.admits(peer->unit->name, LogLevel::warning, now_)) {
      log_.line(LogLevel::warning, name_of(*peer) + ": closed: " + effect.reason->message());
    }
  } else {
    const LogLevel level = peer->is_observer ? LogLevel::debug : LogLevel::info;
    if (log_.admits(peer->unit->name, level, now_)) {
      log_.line(level, name_of(*peer) + ": closed: " + effect.reason->detail);
    }
  }
  connections_.close_after_flush(*peer);
}

/// What no unit alone has caused, all may have.
void EngineDriver::carry_out(core::Log& effect) {
  const std::string_view unit = effect.unit.empty() ? "groups" : std::string_view(effect.unit);
  if (log_.admits(unit, effect.level, now_)) log_.line(effect.level, effect.line);
}

void EngineDriver::carry_out(core::ForHost& effect) {
  if (const auto* const level = std::get_if<core::SetLogLevel>(&effect.what)) {
    log_.set_lowest(level->lowest);
  } else if (const auto* const drains = std::get_if<core::Drains>(&effect.what)) {
    if (settings_.on_draining) settings_.on_draining(drains->reason);
  } else if (settings_.on_drained) {
    settings_.on_drained(std::get<core::Drained>(effect.what).reason);
  }
}

void EngineDriver::send(Peer& peer, wire::FrameHeader header, std::string_view body) {
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  peer.outbox.send(header, body);
  sender_.mark_dirty(peer, header_bytes + body.size());
}

void EngineDriver::reply_error(Peer& peer, const wire::FrameHeader& request, const Error& error) {
  if (wire::find_operation(request.code)) {
    engine_.inspector().count_refused(static_cast<wire::Operation>(request.code), error.code);
  }
  core::SendReply reply;
  reply.request_id = request.id;
  reply.code = static_cast<std::uint16_t>(error.code);
  wire::append_error(reply.head, error);
  send_reply(peer, reply);
}

void EngineDriver::let_go(Peer& peer, const std::string& why) {
  ++counts().too_slow;
  if (log_.admits(peer.unit->name, LogLevel::warning, now_)) {
    log_.line(LogLevel::warning, name_of(peer) + ": closed: " + why);
  }
  connections_.close(peer);
}

/// A connection that still seems to stand. The session has its whole timeout to come back: nobody
/// has said that its process is gone.
void EngineDriver::lose(Peer& peer, const std::string& why) {
  let_go(peer, why);
  apply(core::Disconnected{peer.id, core::DisconnectCause::lost});
}

void EngineDriver::make_room_for(Peer& peer) {
  const core::ConnectionLimits& limits = settings_.core.connections;
  const bool is_patient = now_ - peer.postponed.since < limits.postponed_time_max;
  while (!peer.is_gone && !holdings_.has_room_for(peer)) {
    Peer* const heaviest = holdings_.heaviest();
    if (heaviest == nullptr) return;
    const base::Instant stalled_since = heaviest->connection->stalled_since();
    const bool is_stalled = stalled_since != base::far_future &&
                            now_ - stalled_since >= limits.stall_time_when_postponed_max;
    if (is_patient && (heaviest == &peer || !is_stalled)) return;
    lose(*heaviest, heaviest->outbox.own_bytes() != 0
                        ? "it does not take its replies, and there is no room for those of others"
                        : "its request is not complete, and there is no room for those of others");
  }
}

void EngineDriver::let_slow_go() {
  const core::ConnectionLimits& limits = settings_.core.connections;
  sender_.judge_slow(now_, [this, &limits](Peer& peer, core::SlowPeer why) {
    if (why == core::SlowPeer::is_overfull) {
      lose(peer, "it does not take its replies: more than " +
                     std::to_string(limits.waiting_bytes_max >> 20) + " MiB wait");
    } else if (why == core::SlowPeer::has_stalled) {
      lose(peer,
           "it has taken nothing of its replies for " + base::in_seconds(limits.stall_time_max));
    } else {
      lose(peer, "it does not take its replies, and memory is short");
    }
  });
}

void EngineDriver::end_turn() {
  keep_within_memory();
  tell_of_lost();
}

}  // namespace muster::server
