#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"
#include "client/protocol/fate.h"
#include "muster/log.h"
#include "muster/result.h"
#include "wire/error_body.h"
#include "wire/hello.h"

namespace muster::client::protocol {

using base::Instant;
using CallId = std::uint64_t;  ///< one call of the application; also its request id on the wire

struct Options {
  wire::ClientHello identity;  ///< process, namespace, role; the session fields are ours
  std::string where;           ///< the server's address as the application gave it
  Duration hello_timeout{std::chrono::seconds(2)};  ///< connect plus hello, per address
  Duration backoff_min{std::chrono::milliseconds(50)};
  Duration backoff_max{std::chrono::seconds(1)};
  Duration unavailable_after{std::chrono::seconds(30)};  ///< refused for so long: unavailable
  std::optional<Duration> wait_for_server;  ///< before a session, while nobody is there; none: on
  std::uint64_t jitter_seed = 1;
};

// What the rim saw.

/// Bytes can be written: the client's hello goes out.
struct Connected {
  std::string peer;  ///< the address that answered
};
enum class ConnectFailure : std::uint8_t {
  refused,       ///< at every address a kernel says that nobody listens: the server is dead
  silent,        ///< nothing came back in time, or no route
  not_resolved,  ///< the host name has no address
};
struct ConnectFailed {
  ConnectFailure kind = ConnectFailure::refused;
  std::string detail;
};
/// `of_attempt`: of the connection that was made last, while an older one stands.
struct Received {
  std::string_view bytes;
  bool of_attempt = false;
};
struct Disconnected {
  bool by_peer = true;  ///< FIN or RST; false: a local or network failure
  std::string detail;
  bool of_attempt = false;
  /// The server does not take who we are, or has not shown to be who it should be.
  bool is_refused = false;
};
/// There is a newer key than that which the connection that stands was made with. The rim says so
/// again and again, until one stands that was made with the newest.
struct NewKey {};
struct Advance {};
using Input = std::variant<Connected, ConnectFailed, Received, Disconnected, NewKey, Advance>;

// What the rim does, in order.

/// Open a connection to the first address that answers (the last good one first; after an attempt
/// that was ended by Disconnect, beginning behind where that was); answered by Connected or
/// ConnectFailed. The one that stands, if one does, is kept: until Established it may come back.
struct Connect {};
/// Close the connection when what was transmitted has left; nothing of it is an input any more.
struct Disconnect {
  enum class Which : std::uint8_t { standing, attempt, both };
  Which which = Which::both;
  /// It is only silent and may stand: keep it open until the session stands again or is over. To
  /// the server its end would be that of the process, and the grace is short.
  bool is_silent = false;
};
struct Transmit {
  std::string bytes;        ///< whole frames, or the hello
  bool of_attempt = false;  ///< on the connection that was made last: the hello
};
/// The call is over: the body of its reply, or why there is none.
struct Complete {
  CallId call = 0;
  std::uint64_t user_data = 0;  ///< that it was submitted with
  Result<std::string> reply;
  Fate fate = Fate::answered;
  bool is_held = false;  ///< its receipt is its caller's: `Requests::conclude` has to follow
};
/// Something happened to an epoch or to the session.
struct Notify {
  wire::Event event;
};
/// The session stands (again), on the connection that was made last: an older one is closed. The
/// limits are known.
struct Established {
  bool resumed = false;
};
struct Log {
  LogLevel level = LogLevel::info;
  std::string line;
};
using Effect = std::variant<Connect, Disconnect, Transmit, Complete, Notify, Established, Log>;

}  // namespace muster::client::protocol
