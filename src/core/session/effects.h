#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/memory/payload.h"
#include "core/session/connection.h"
#include "muster/error.h"
#include "muster/log.h"
#include "wire/error_body.h"
#include "wire/hello.h"

namespace muster::core {

// Effects, to be carried out in their order. What is large and rare is behind a pointer: an event
// may have thousands of them.

struct SendHello {
  ConnectionId connection = 0;
  std::shared_ptr<const wire::ServerHello> hello;
  Quota* quota = nullptr;  ///< for what comes from now on; null: refused, nothing comes
};
/// A reply frame whose body is `head`, then `value`, then the bytes of `tail`, if any.
struct SendReply {
  ConnectionId connection = 0;
  std::uint64_t request_id = 0;
  std::uint16_t code = 0;
  bool owns_tail = false;  ///< nobody else has it
  std::string head;
  std::string_view value;  ///< borrowed from the table: good until the next event
  Payload tail;
};
/// The request that was handed in has not been carried out, and changes nothing: its reply would
/// take so many bytes, for which there is no room. It is handed in again when there is some; until
/// then nothing else of its connection is.
struct Postpone {
  ConnectionId connection = 0;
  std::uint64_t bytes = 0;
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
  std::string unit;  ///< that has caused it; empty: none alone has
};

/// From now on the log has no line below this level; none: no line.
struct SetLogLevel {
  std::optional<LogLevel> lowest;
};
/// An operator has asked for the server's end: nobody begins a session any more. No reason: it was
/// cancelled.
struct Drains {
  std::string reason;
};
/// An operator has asked for the server's end, and everybody has gone, or the time is over. Nobody
/// begins a session any more.
struct Drained {
  std::string reason;
};

/// For whoever has started the server.
struct ForHost {
  std::variant<SetLogLevel, Drains, Drained> what;
};

using Effect = std::variant<SendHello, SendReply, SendEvent, SendHeartbeatReply, SendGoodbye, Close,
                            Log, Postpone, ForHost>;

}  // namespace muster::core
