#include "server/hello_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/failure.h"
#include "base/random.h"
#include "base/secret/unshown.h"
#include "base/text.h"
#include "core/session/failure.h"
#include "wire/foreign.h"
#include "wire/hello.h"

namespace muster::server {
namespace {

constexpr int overdue_per_turn = 512;

auth::CertificateNames names_of(const std::vector<std::string>& shown) {
  auth::CertificateNames names;
  for (const std::string& name : shown) {
    const std::string text = name.substr(name.find(':') + 1);
    if (name.starts_with("dns:")) names.dns.push_back(text);
    if (name.starts_with("uri:")) names.uris.push_back(text);
    if (name.starts_with("cn:")) names.common_name = text;
  }
  return names;
}

Proved proved_by(const Newcomer& newcomer) {
  if (newcomer.tls == nullptr) return newcomer.arrival.user;
  std::string id = newcomer.tls->session().peer_id();
  if (!id.empty()) return KeyShown{std::move(id)};
  return names_of(newcomer.tls->session().peer_names());
}

/// In the midst of a handshake it could not be read, and guests read nothing of Muster's.
bool can_be_told(const Newcomer& newcomer) {
  return newcomer.stage == Newcomer::Stage::hello &&
         newcomer.arrival.kind != Arrival::Kind::tcpstore;
}

}  // namespace

/// Most often all of it comes at once, and is read where it lies.
HelloReader::Read HelloReader::received(Newcomer& newcomer, std::string_view bytes) {
  constexpr std::size_t size = wire::client_hello_bytes;
  if (!newcomer.hello && bytes.size() >= size) {
    return {complete(newcomer, bytes.substr(0, size)), bytes.substr(size)};
  }
  if (!newcomer.hello) newcomer.hello = std::make_unique<Newcomer::HelloBytes>();
  const std::size_t before = newcomer.hello_bytes_count;
  const std::size_t count = std::min(bytes.size(), size - before);
  std::memcpy(newcomer.hello->data() + before, bytes.data(), count);
  newcomer.hello_bytes_count += static_cast<std::uint32_t>(count);
  const std::string_view hello(newcomer.hello->data(), newcomer.hello_bytes_count);
  if (hello.size() == size) return {complete(newcomer, hello), bytes.substr(count)};
  const auto known = wire::check_magic(hello);
  if (!known && !wire::may_become_tcpstore(hello)) refuse_speaker(newcomer, hello, known.error());
  return {};
}

Peer* HelloReader::complete(Newcomer& newcomer, std::string_view bytes) {
  const auto hello = wire::decode_client_hello(bytes);
  if (!hello) {
    refuse_speaker(newcomer, bytes, hello.error());
    return nullptr;
  }
  std::optional<Visitor> visitor;
  if (newcomer.arrival.kind != Arrival::Kind::open) {
    visitor = admit(newcomer, *hello);
    if (!visitor) return nullptr;
  }
  std::optional<wire::ResumeToken> token(std::in_place);
  if (hello->session_id == 0) token = tokens_.next();  // a resume has its session's
  if (!token) {
    Error error;
    error.code = ErrorCode::unavailable;
    error.detail = base::no_random;
    refuse(newcomer, error);
    return nullptr;
  }
  const bool is_of_own_user = net::is_own_user(newcomer.unit->id);
  Unit& unit = visitor ? connections_.unit(visitor->unit, visitor->unit_name) : *newcomer.unit;
  Peer& peer = connections_.said_hello(newcomer, unit);
  peer.is_observer = hello->role == wire::Role::observer;
  core::Hello event;
  event.connection = peer.id;
  event.hello = *hello;
  event.hello.process.label = base::shown_unless_secret(hello->process.label);
  if (log_.is_on()) peer.process = core::describe(event.hello.process);
  event.unit = peer.unit->name;
  event.fresh_token = *token;
  if (visitor) {
    event.grant = std::move(visitor->grant);
    event.key = visitor->key;
  }
  event.is_of_own_user = is_of_own_user;
  event.channel_bytes = peer.connection->own_bytes();
  driver_.apply(event);
  return &peer;
}

Peer* HelloReader::receive_guest(Newcomer& newcomer) {
  const std::optional<wire::ResumeToken> token = tokens_.next();  // so that nobody can resume it
  if (!token) {
    refuse(newcomer, base::failure(ErrorCode::unavailable, std::string(base::no_random)));
    return nullptr;
  }
  const tcpstore::Port& port = tcpstore_[newcomer.arrival.port];
  Unit& unit = connections_.unit(port.unit, port.unit_name);
  Peer& peer = connections_.said_hello(newcomer, unit);
  peer.receive(port);
  core::Hello event;
  event.connection = peer.id;
  event.hello.name_space = port.name_space;
  event.hello.process.host = peer.connection->peer().substr(0, wire::name_bytes_max);
  event.hello.process.label = "TCPStore";
  event.unit = peer.unit->name;
  event.fresh_token = *token;
  event.guest = port.terms;
  if (log_.is_on()) peer.process = core::describe(event.hello.process);
  driver_.apply(event);
  return &peer;
}

/// Who comes is known; whether he may is decided here. Nobody who may not learns why.
///
/// returns  nothing: the newcomer is gone
std::optional<Visitor> HelloReader::admit(Newcomer& newcomer, const wire::ClientHello& hello) {
  auto decided = door_->admit(proved_by(newcomer), {hello.role, hello.name_space});
  if (const auto* const refused = std::get_if<auth::Refused>(&decided)) {
    log_not_admitted(newcomer, refused->logged);
    send_refusal(newcomer, refused->told);
    return std::nullopt;
  }
  Visitor& visitor = std::get<Visitor>(decided);
  if (is_one_too_many(visitor, hello)) {
    Error error;
    error.code = ErrorCode::resource_exhausted;
    error.limit = visitor.grant->limits.connections;
    error.detail = visitor.unit_name + " has its " + std::to_string(error.limit) + " connections";
    log_not_admitted(newcomer, error.detail);
    send_refusal(newcomer, error);
    return std::nullopt;
  }
  log_admitted(newcomer, visitor, hello.role);
  return std::move(visitor);
}

/// A session that comes back is not: its old connection may not be over yet.
bool HelloReader::is_one_too_many(const Visitor& visitor, const wire::ClientHello& hello) {
  const std::uint32_t connections_max = visitor.grant->limits.connections;
  if (connections_max == 0 || hello.session_id != 0) return false;
  return connections_.unit(visitor.unit, visitor.unit_name).connections_count >= connections_max;
}

void HelloReader::log_admitted(const Newcomer& newcomer, const Visitor& visitor, wire::Role role) {
  const LogLevel level = role == wire::Role::observer ? LogLevel::debug : LogLevel::info;
  if (!log_.admits(visitor.unit_name, level, driver_.now())) return;
  log_.line(level, newcomer.connection->peer() + ": admitted as " + visitor.unit_name);
}

void HelloReader::judge_overdue() {
  for (int count = 0; count < overdue_per_turn; ++count) {
    Newcomer* const newcomer = connections_.newcomers().overdue(driver_.now());
    if (newcomer == nullptr) return;
    if (newcomer->arrival.kind == Arrival::Kind::tcpstore) {
      receive_guest(*newcomer);
      continue;
    }
    Error error;
    error.code = ErrorCode::timed_out;
    error.detail =
        "no whole hello came within " + base::in_seconds(options_.connections.hello_time);
    refuse(*newcomer, error);
  }
}

void HelloReader::refuse(Newcomer& newcomer, const Error& why) {
  log_refused(newcomer, why.detail);
  send_refusal(newcomer, why);
}

/// A client of TCPStore hears nothing, since it would take our words for an answer: its connection
/// ends. It is likely to be a rank of this very group, one that has not moved to Muster.
void HelloReader::refuse_speaker(Newcomer& newcomer, std::string_view greeting, const Error& why) {
  if (wire::foreign_protocol(greeting) != wire::tcpstore_name) return refuse(newcomer, why);
  ++driver_.counts().refused;
  ++driver_.counts().tcpstore_refused;
  const std::string peer = newcomer.connection->peer();
  if (log_.admits(newcomer.unit->name, LogLevel::warning, driver_.now())) {
    log_.line(LogLevel::warning,
              peer + ": refused: a client of TCPStore, which is not served at this port");
  }
  connections_.close(newcomer);
  driver_.apply(core::Stranger{"a client of PyTorch's TCPStore at " + peer +
                               " was refused: it may be a rank that does not use Muster's group"});
}

void HelloReader::send_refusal(Newcomer& newcomer, const Error& why) {
  if (!can_be_told(newcomer)) return connections_.close(newcomer);
  newcomer.connection->send(refusal(why.code, why.detail));
  connections_.close_after_flush(newcomer);
}

/// It hears why, but nobody waits until it has: all that it sent was read, so the system takes the
/// bytes along.
bool HelloReader::turn_one_out() {
  if (connections_.newcomers().empty()) return false;
  Newcomer& newcomer = connections_.newcomers().first_of_fullest();
  Error error;
  error.code = ErrorCode::busy;
  error.detail = "the server is full: newcomers without a hello made room for others";
  log_refused(newcomer, error.detail);
  if (can_be_told(newcomer)) {
    newcomer.connection->send(refusal(error.code, error.detail));
    newcomer.connection->flush();
  }
  connections_.close(newcomer);
  return true;
}

void HelloReader::log_refused(const Newcomer& newcomer, const std::string& why) {
  ++driver_.counts().refused;
  if (!log_.admits(newcomer.unit->name, LogLevel::debug, driver_.now())) return;
  log_.line(LogLevel::debug, newcomer.connection->peer() + ": refused: " + why);
}

void HelloReader::log_not_admitted(const Newcomer& newcomer, const std::string& why) {
  ++driver_.counts().refused;
  if (!log_.admits(newcomer.unit->name, LogLevel::warning, driver_.now())) return;
  log_.line(LogLevel::warning, newcomer.connection->peer() + ": not admitted: " + why);
}

std::string HelloReader::refusal(ErrorCode code, const std::string& detail) const {
  wire::ServerHello hello;
  hello.status = static_cast<std::uint16_t>(code);
  hello.incarnation = options_.incarnation;
  hello.detail = detail;
  std::string bytes;
  wire::append_server_hello(bytes, hello);
  return bytes;
}

}  // namespace muster::server
