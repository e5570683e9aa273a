#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "core/memory/charged_memory.h"
#include "core/memory/payload.h"
#include "core/session/connection.h"
#include "core/session/counts.h"
#include "core/session/options.h"
#include "muster/error.h"
#include "muster/log.h"
#include "wire/error_body.h"
#include "wire/hello.h"
#include "wire/request.h"

// The engine is the server without sockets, threads and clock: events go in with the time at
// which they happened, effects come out. A rim (src/server, or a test, a simulator, a fuzzer)
// turns the world into events and effects into deeds. The same events give the same effects.

namespace muster::core {

// Events.

/// A client has said hello. `fresh_token` is random; it becomes the token of a new session.
struct Hello {
  ConnectionId connection = 0;
  wire::ClientHello hello;
  wire::ResumeToken fresh_token;
};
/// Bytes have come, which proves that the client lives. Before the frames that they hold.
struct Heard {
  ConnectionId connection = 0;
};
struct Requested {
  ConnectionId connection = 0;
  const wire::Request* request = nullptr;  ///< its views are read during `apply` only
  /// In which nothing is but the request; null: it lies elsewhere. Empty afterwards if it was kept.
  ChargedMemory* memory = nullptr;
};
struct Acknowledged {
  ConnectionId connection = 0;
  const std::vector<std::uint64_t>* request_ids = nullptr;
};
struct Abandoned {
  ConnectionId connection = 0;
  const std::vector<std::uint64_t>* request_ids = nullptr;
};
struct Heartbeat {
  ConnectionId connection = 0;
  std::uint64_t number = 0;
  const std::vector<std::uint64_t>* acknowledged = nullptr;
};
/// The client ends its session in order.
struct Goodbye {
  ConnectionId connection = 0;
};
struct Disconnected {
  ConnectionId connection = 0;
  DisconnectCause cause = DisconnectCause::closed;
};
/// Time has passed: timers fire.
struct Advance {};
/// The server stops: every client is told `reason`.
struct Stop {
  std::string reason;
};

using Event = std::variant<Hello, Heard, Requested, Acknowledged, Abandoned, Heartbeat, Goodbye,
                           Disconnected, Advance, Stop>;

// Effects, to be carried out in their order. What is large and rare is behind a pointer: an event
// may have thousands of them.

struct SendHello {
  ConnectionId connection = 0;
  std::shared_ptr<const wire::ServerHello> hello;
};
/// A reply frame whose body is `head`, then `value`, then the bytes of `tail`, if any.
struct SendReply {
  ConnectionId connection = 0;
  std::uint64_t request_id = 0;
  std::uint16_t code = 0;
  std::string head;
  std::string_view value;  ///< borrowed from the table: good until the next event
  Payload tail;
};
struct SendEvent {
  ConnectionId connection = 0;
  wire::EventKind kind = wire::EventKind::epoch_broken;
  std::shared_ptr<const std::string> body;  ///< shared by all who are told
};
struct SendHeartbeatReply {
  ConnectionId connection = 0;
  std::uint64_t number = 0;
};
struct SendGoodbye {
  ConnectionId connection = 0;
  std::string reason;
};
/// Close after what was sent before has left. No `Disconnected` follows.
struct Close {
  ConnectionId connection = 0;
  std::shared_ptr<const Error> reason;
};
struct Log {
  LogLevel level = LogLevel::info;
  std::string line;
};

using Effect =
    std::variant<SendHello, SendReply, SendEvent, SendHeartbeatReply, SendGoodbye, Close, Log>;

class Engine {
 public:
  explicit Engine(Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Handles one event. An earlier `now` than that of the last call counts as that.
  ///
  /// returns  the effects, valid until the next call
  /// cost     does not depend on the number of keys, sessions and waits; O(world_size) where a
  ///          round or an epoch is decided
  std::vector<Effect>& apply(const Event& event, Instant now);

  /// When `Advance` is due next; far_future when nothing waits.
  Instant next_deadline() const;

  Counts counts() const;

  /// What all memory is charged to; the rim charges its partial frames to it too.
  Quota& quota();

  const Options& options() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::core
