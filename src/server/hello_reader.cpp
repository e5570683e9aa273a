#include "server/hello_reader.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "base/text.h"
#include "core/session/failure.h"
#include "wire/hello.h"

namespace muster::server {

std::string_view HelloReader::received(Peer& peer, std::string_view bytes) {
  HelloStage& stage = *peer.hello;
  const std::size_t count = std::min(bytes.size(), stage.bytes.size() - stage.count);
  std::memcpy(stage.bytes.data() + stage.count, bytes.data(), count);
  stage.count += count;
  if (const auto known = wire::check_magic({stage.bytes.data(), stage.count}); !known) {
    refuse(peer, known.error());
    return {};
  }
  if (stage.count < stage.bytes.size()) return {};
  complete(peer);
  return bytes.substr(count);
}

void HelloReader::complete(Peer& peer) {
  const auto hello = wire::decode_client_hello({peer.hello->bytes.data(), peer.hello->count});
  if (!hello) return refuse(peer, hello.error());
  connections_.said_hello(peer);
  if (log_.is_on()) peer.process = core::describe(hello->process);
  peer.is_observer = hello->role == wire::Role::observer;
  core::Hello event;
  event.connection = peer.id;
  event.hello = *hello;
  event.unit = peer.unit;
  base::fill_random(event.fresh_token.bytes.data(), event.fresh_token.bytes.size());
  driver_.apply(event);
}

void HelloReader::refuse_overdue() {
  while (Peer* const peer = connections_.newcomers().overdue(driver_.now())) {
    Error error;
    error.code = ErrorCode::timed_out;
    error.detail =
        "no whole hello came within " + base::in_seconds(options_.connections.hello_time);
    refuse(*peer, error);
  }
}

void HelloReader::refuse(Peer& peer, const Error& why) {
  ++driver_.counts().refused;
  if (log_.admits(peer.unit, LogLevel::debug, driver_.now())) {
    log_.line(LogLevel::debug, name_of(peer) + ": refused: " + why.detail);
  }
  peer.connection->send(refusal(why.code, why.detail));
  connections_.close_after_flush(peer);
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
