#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/protocol/protocol.h"
#include "wire/error_body.h"
#include "wire/frame.h"
#include "wire/reply.h"

// What tests of client::protocol::Protocol need to be its server, its network and its clock.

namespace muster::client::protocol {

using namespace std::chrono_literals;

inline std::string hello_bytes(std::uint64_t session_id = 1, bool resumed = false,
                               wire::ServerLimits limits = {}) {
  wire::ServerHello hello;
  hello.incarnation = 100;
  hello.session_id = session_id;
  hello.resumed = resumed;
  hello.limits = limits;
  std::string bytes;
  wire::append_server_hello(bytes, hello);
  return bytes;
}

inline std::string frame_bytes(wire::FrameType type, std::uint16_t code, std::uint64_t id,
                               std::string_view body) {
  wire::FrameHeader header;
  header.type = type;
  header.code = code;
  header.id = id;
  std::string bytes;
  wire::append_frame(bytes, header, body);
  return bytes;
}

template <class Reply>
std::string reply_bytes(std::uint64_t id, const Reply& reply) {
  std::string body;
  wire::append_body(body, reply);
  return frame_bytes(wire::FrameType::reply, 0, id, body);
}

inline std::string error_bytes(std::uint64_t id, ErrorCode code) {
  Error error;
  error.code = code;
  std::string body;
  wire::append_error(body, error);
  return frame_bytes(wire::FrameType::reply, static_cast<std::uint16_t>(code), id, body);
}

inline std::string event_bytes(wire::EventKind kind, ErrorCode code) {
  wire::Event event;
  event.kind = kind;
  event.epoch = kind == wire::EventKind::session_ended ? 0 : 7;
  event.error.code = code;
  std::string body;
  wire::append_event(body, event);
  return frame_bytes(wire::FrameType::event, static_cast<std::uint16_t>(kind), 0, body);
}

/// What is transmitted behind the echo of the server's hello, if there is one.
inline std::string without_echo(std::string bytes) {
  const auto frame = wire::cut_frame(bytes, 1 << 20);
  if (!frame.has_value() || !*frame || (*frame)->header.type != wire::FrameType::echo) return bytes;
  return bytes.substr(wire::frame_header_bytes + (*frame)->body.size());
}

/// A protocol and what came of it.
struct Conversation {
  explicit Conversation(Options options = {}) : protocol(std::move(options)) {}
  Conversation(const Protocol& broken, Error why) : protocol(broken, std::move(why)) {}

  void take() {
    for (Effect& effect : protocol.effects().take()) {
      if (auto* sent = std::get_if<Transmit>(&effect)) {
        transmitted.push_back(without_echo(std::move(sent->bytes)));
      }
      if (auto* over = std::get_if<Complete>(&effect)) {
        completions.emplace(over->call, std::move(*over));
      }
      connect_count += std::holds_alternative<Connect>(effect) ? 1 : 0;
      disconnect_count += std::holds_alternative<Disconnect>(effect) ? 1 : 0;
      established_count += std::holds_alternative<Established>(effect) ? 1 : 0;
      if (auto* told = std::get_if<Notify>(&effect)) notified.push_back(std::move(told->event));
    }
  }

  void open() {
    protocol.open(now);
    take();
  }
  void apply(const Input& input) {
    protocol.apply(input, now);
    take();
  }
  void receive(std::string_view bytes) { apply(Received{bytes}); }
  CallId call(const wire::RequestBody& body, Duration timeout) {
    const CallId id = protocol.submit(body, timeout, now);
    take();
    return id;
  }

  /// A session stands.
  void establish(const wire::ServerLimits& limits = {}) {
    open();
    apply(Connected{});
    receive(hello_bytes(1, false, limits));
  }

  /// Time passes as a rim lets it; returns how often it had to look.
  int pass(Duration duration) {
    const Instant end = now + duration;
    int looks = 0;
    while (protocol.next_deadline() <= end && looks < 1000000) {
      now = std::max(now, protocol.next_deadline());
      apply(Advance{});
      ++looks;
    }
    now = end;
    return looks;
  }

  bool is_over(CallId id) const { return completions.count(id) != 0; }
  const Complete& completion(CallId id) const { return completions.find(id)->second; }
  ErrorCode code(CallId id) const { return completion(id).reply.error().code; }

  Protocol protocol;
  Instant now{1000s};
  std::vector<std::string> transmitted;
  std::multimap<CallId, Complete> completions;
  std::vector<wire::Event> notified;
  int connect_count = 0;
  int disconnect_count = 0;
  int established_count = 0;
};

}  // namespace muster::client::protocol
