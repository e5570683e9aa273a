#include "server/door/entrance.h"

#include <utility>

#include "base/failure.h"
#include "net/connection.h"
#include "net/tls/stream.h"
#include "server/door/first_flight.h"
#include "wire/foreign.h"
#include "wire/hello.h"

// Life cycle of a newcomer here: its first flight comes -> it waits at the door, unread -> its
// handshake is under way -> something comes by TLS: its hello is read. Or it goes before that: its
// time is over, it is one too many, or its handshake fails.

namespace muster::server {
namespace {

using Stage = Newcomer::Stage;

}  // namespace

void Entrance::received(Newcomer& newcomer, std::string_view bytes) {
  std::string& flight = newcomer.by_tls->first_flight;
  const std::size_t room_bytes = first_flight_bytes_max - flight.size();
  flight.reserve(first_flight_bytes_max);  // it does not grow beyond that
  flight += bytes.substr(0, room_bytes);
  const FirstFlight judged = judge_first_flight(flight);
  if (judged == FirstFlight::wrong || bytes.size() > room_bytes) return refuse_plain(newcomer);
  if (judged == FirstFlight::incomplete) return;
  newcomer.connection->pause_reading();
  connections_.handshakes().add(newcomer);
  world_.wake_soon();
}

/// A client of Muster that has no credential can hear why; and so can others who speak in clear.
void Entrance::refuse_plain(Newcomer& newcomer) {
  const std::string& first = newcomer.by_tls->first_flight;
  const Result<void> known = wire::check_magic(first);
  if (known && first.size() < wire::magic.size()) return;  // it may become one
  if (wire::may_become_tcpstore(first)) return;
  Error why = base::failure(ErrorCode::permission_denied,
                            "this server speaks TLS and asks who comes: set "
                            "MUSTER_CREDENTIAL_FILE to the file with a key that it knows");
  if (!known) why = known.error();
  if (begins_as_tls(first)) {
    why = base::failure(ErrorCode::protocol_error, "this is no ClientHello of TLS 1.3 of at most " +
                                                       std::to_string(first_flight_bytes_max) +
                                                       " bytes");
  }
  newcomer.stage = Stage::hello;
  hellos_.refuse_speaker(newcomer, first, why);
}

void Entrance::shake_hands() {
  if (door_ == nullptr) return;
  make_place();
  Handshakes& handshakes = connections_.handshakes();
  Newcomer* const newcomer = handshakes.take_next(driver_.now());
  if (newcomer == nullptr) return;
  if (handshakes.has_waiting()) world_.wake_soon();
  if (net::Connection::has_gone(newcomer->connection->descriptor())) {
    handshakes.spared();
    ++driver_.counts().ended;
    return connections_.close(*newcomer);
  }
  std::unique_ptr<net::tls::TlsSession> session = net::tls::TlsSession::create(door_->tls());
  net::Loop* const loop = world_.loop();
  if (session == nullptr || loop == nullptr) {
    hellos_.log_not_admitted(*newcomer, "there is no memory for its TLS");
    return connections_.close(*newcomer);
  }
  const auto stream =
      std::make_shared<net::tls::TlsStream>(*loop, newcomer->connection, std::move(session));
  newcomer->connection = stream;
  newcomer->tls = &stream->tls();
  const std::string flight = std::exchange(newcomer->by_tls->first_flight, {});
  door_->take_named();
  stream->take_over(*newcomer, flight);
  if (stream->tls().phase() != net::tls::Phase::failed) return;
  const auto named = door_->take_named();
  refuse_failed(*newcomer, named ? door_->why_refused(*named) : stream->tls().session().failure());
  connections_.close_after_flush(*newcomer);
}

std::optional<Door::Version> Entrance::look_for_credentials() {
  if (door_ == nullptr || !door_->has_changed(driver_.now())) return std::nullopt;
  Result<Door::Version> version = door_->read();
  if (version) return std::move(*version);
  log_.line(LogLevel::error, "the credentials stay as they were: " + version.error().detail);
  return std::nullopt;
}

void Entrance::warn_of_expiry() {
  if (door_ == nullptr) return;
  for (const auto& [level, text] : door_->expiry_warnings()) log_.line(level, text);
}

/// Whoever has a place and does nothing with it makes room.
void Entrance::make_place() {
  Newcomer* const overdue = connections_.handshakes().overdue(driver_.now());
  if (overdue == nullptr) return;
  hellos_.log_not_admitted(*overdue, "its handshake has taken too long while others waited");
  connections_.close(*overdue);
}

void Entrance::ended(Newcomer& newcomer, const std::string& detail) {
  refuse_failed(newcomer, detail);
}

void Entrance::refuse_failed(Newcomer& newcomer, const std::string& why) {
  connections_.handshakes().failed(newcomer, driver_.now());
  hellos_.log_not_admitted(newcomer, why);
}

}  // namespace muster::server
