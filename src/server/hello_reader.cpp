#include "server/hello_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "core/session/failure.h"
#include "wire/hello.h"

namespace muster::server {
namespace {

constexpr int overdue_per_turn = 512;

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
  if (const auto known = wire::check_magic(hello); !known) refuse(newcomer, known.error());
  return {};
}

Peer* HelloReader::complete(Newcomer& newcomer, std::string_view bytes) {
  const auto hello = wire::decode_client_hello(bytes);
  if (!hello) {
    refuse(newcomer, hello.error());
    return nullptr;
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
  Peer& peer = connections_.said_hello(newcomer);
  if (log_.is_on()) peer.process = core::describe(hello->process);
  peer.is_observer = hello->role == wire::Role::observer;
  core::Hello event;
  event.connection = peer.id;
  event.hello = *hello;
  event.unit = peer.unit->name;
  event.fresh_token = *token;
  driver_.apply(event);
  return &peer;
}

void HelloReader::refuse_overdue() {
  for (int count = 0; count < overdue_per_turn; ++count) {
    Newcomer* const newcomer = connections_.newcomers().overdue(driver_.now());
    if (newcomer == nullptr) return;
    Error error;
    error.code = ErrorCode::timed_out;
    error.detail =
        "no whole hello came within " + base::in_seconds(options_.connections.hello_time);
    refuse(*newcomer, error);
  }
}

void HelloReader::refuse(Newcomer& newcomer, const Error& why) {
  tell_refused(newcomer, why);
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
  tell_refused(newcomer, error);
  newcomer.connection->flush();
  connections_.close(newcomer);
  return true;
}

void HelloReader::tell_refused(const Newcomer& newcomer, const Error& why) {
  ++driver_.counts().refused;
  if (log_.admits(newcomer.unit->name, LogLevel::debug, driver_.now())) {
    log_.line(LogLevel::debug, newcomer.connection->peer() + ": refused: " + why.detail);
  }
  newcomer.connection->send(refusal(why.code, why.detail));
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
