#include "server/connection_handler.h"

#include <utility>

namespace muster::server {

void ConnectionHandler::accepted(std::shared_ptr<net::Channel> connection,
                                 const net::UnitId& unit_id, const Arrival& arrival) {
  Unit& unit = connections_.unit(unit_id);
  if (log_.admits(unit.name, LogLevel::debug, driver_.now())) {
    log_.line(LogLevel::debug, connection->peer() + ": accepted");
  }
  Newcomer& newcomer = connections_.add(std::move(connection), unit, arrival, driver_.now());
  if (connections_.are_too_many()) hellos_.turn_one_out();
  newcomer.connection->start(newcomer);
}

std::vector<core::ConnectionId> ConnectionHandler::handle_waiting() {
  std::vector<core::ConnectionId> readers;
  while (Peer* const peer = work_.take_next()) {
    const bool has_none_left = frames_.take_turn(*peer);
    // Also of one that is held, or whose request waits for room: it never takes its replies.
    if (peer->end && !peer->is_gone && !peer->work.in_unit.linked()) {
      end(*peer);
    } else if (has_none_left) {
      readers.push_back(peer->id);
    }
  }
  return readers;
}

/// What it has sent meanwhile.
void ConnectionHandler::read(core::ConnectionId id) {
  Peer* const peer = connections_.peers().find(id);
  if (peer == nullptr) return;
  peer->work.has_turn = true;
  peer->connection->resume_reading();
  peer->connection->read_now();
}

void ConnectionHandler::received(Newcomer& newcomer, std::string_view bytes) {
  using Stage = Newcomer::Stage;
  turns_.begin_turn();
  if (newcomer.stage == Stage::first_flight) {
    entrance_.received(newcomer, bytes);
    return turns_.end_turn();
  }
  if (newcomer.arrival.kind == Arrival::Kind::tcpstore) {
    Peer* const guest = hellos_.receive_guest(newcomer);
    if (guest != nullptr && !guest->is_gone) frames_.received_behind_hello(*guest, bytes);
    return turns_.end_turn();
  }
  if (newcomer.stage == Stage::handshake) connections_.handshakes().succeeded(newcomer);
  const HelloReader::Read read = hellos_.received(newcomer, bytes);
  if (read.peer != nullptr && !read.rest.empty() && !read.peer->is_gone) {
    frames_.received_behind_hello(*read.peer, read.rest);
  }
  turns_.end_turn();
}

void ConnectionHandler::closed(Newcomer& newcomer, net::CloseCause cause,
                               const std::string& detail) {
  turns_.begin_turn();
  if (log_.admits(newcomer.unit->name, LogLevel::debug, driver_.now())) {
    log_.line(LogLevel::debug, newcomer.connection->peer() + ": ended: " + detail);
  }
  if (newcomer.stage == Newcomer::Stage::handshake) entrance_.ended(newcomer, detail);
  ++(cause == net::CloseCause::by_peer ? driver_.counts().ended : driver_.counts().broken);
  connections_.forget(newcomer);
  turns_.end_turn();
}

void ConnectionHandler::received(Peer& peer, std::string_view bytes) {
  turns_.begin_turn();
  frames_.received(peer, bytes);
  turns_.end_turn();
}

void ConnectionHandler::drained(Peer& peer) {
  turns_.begin_turn();
  frames_.drained(peer);
  turns_.end_turn();
}

/// What the peer sent before its end is handled first, in its turn.
void ConnectionHandler::closed(Peer& peer, net::CloseCause cause, const std::string& detail) {
  turns_.begin_turn();
  peer.end = std::make_unique<Peer::End>(Peer::End{cause, detail});
  if (!peer.work.in_unit.linked()) end(peer);
  turns_.end_turn();
}

void ConnectionHandler::end(Peer& peer) {
  const auto [cause, detail] = *peer.end;
  const bool is_known = !peer.session.empty() && !peer.is_observer;
  const LogLevel level = is_known ? LogLevel::info : LogLevel::debug;
  if (log_.admits(peer.unit->name, level, driver_.now())) {
    log_.line(level, name_of(peer) + ": ended: " + detail);
  }
  connections_.forget(peer);
  const bool by_peer = cause == net::CloseCause::by_peer;
  ++(by_peer ? driver_.counts().ended : driver_.counts().broken);
  driver_.apply(core::Disconnected{
      peer.id, by_peer ? core::DisconnectCause::closed : core::DisconnectCause::lost});
}

}  // namespace muster::server
