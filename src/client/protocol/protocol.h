#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "client/protocol/fate.h"
#include "muster/error.h"
#include "muster/log.h"
#include "muster/result.h"
#include "wire/error_body.h"
#include "wire/hello.h"
#include "wire/request.h"

// The client's side of one session, without sockets, threads and clock: what the rim
// (src/client/link.h, or a test, or a simulator) sees goes in with its time, effects come out.
//
// Life cycle: connecting -> connected <-> disconnected (reconnecting by itself) -> ended
// (session expired, fenced, server restarted: every call fails until `reopen`) or closed.
// While the server was silent for 0.8 of the session timeout calls end with `suspended`.

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
struct Received {
  std::string_view bytes;
};
struct Disconnected {
  bool by_peer = true;  ///< FIN or RST; false: a local or network failure
  std::string detail;
};
struct Advance {};
using Input = std::variant<Connected, ConnectFailed, Received, Disconnected, Advance>;

// What the rim does, in order.

/// Open a connection to the first address that answers (the last good one first; after an attempt
/// that was ended by Disconnect, beginning behind where that was); answered by Connected or
/// ConnectFailed. Any older connection is closed first.
struct Connect {};
/// Close the connection when what was transmitted has left; nothing of it is an input any more.
struct Disconnect {
  /// It is only silent and may stand: keep it open until the session stands again or is over. To
  /// the server its end would be that of the process, and the grace is short.
  bool is_silent = false;
};
struct Transmit {
  std::string bytes;  ///< whole frames
};
/// The call is over: the body of its reply, or why there is none.
struct Complete {
  CallId call = 0;
  Result<std::string> reply;
  Fate fate = Fate::answered;
};
/// Something happened to an epoch or to the session.
struct Notify {
  wire::Event event;
};
/// The session stands (again); the limits are known.
struct Established {
  bool resumed = false;
};
struct Log {
  LogLevel level = LogLevel::info;
  std::string line;
};
using Effect = std::variant<Connect, Disconnect, Transmit, Complete, Notify, Established, Log>;

class Protocol {
 public:
  explicit Protocol(Options options);
  /// What is left of one in whose midst an exception was thrown: its options, and which ids it gave
  /// to calls. Nothing else of it counts, and none of its calls is completed. The session is over:
  /// every call fails with `why` until `reopen`.
  Protocol(const Protocol& broken, Error why);
  ~Protocol();
  Protocol(Protocol&& other) noexcept;
  Protocol& operator=(Protocol&& other) noexcept;

  /// Begins to connect.
  void open(Instant now);

  /// What the rim saw. Time never runs backwards from call to call.
  void apply(const Input& input, Instant now);

  /// Sends a request, now or when the session stands; exactly one Complete follows, at the
  /// latest at `now + timeout + slack`.
  CallId submit(const wire::RequestBody& body, Duration timeout, Instant now);

  /// Ends a pending call with `cancelled`; its late answer is dropped, an object in it stays.
  /// A collective's call cannot be taken back: the rim sends cancel_round instead.
  void cancel(CallId call, Instant now);

  /// Ends the session in order: goodbye goes out, every pending call ends with `closed`.
  void close(Instant now);

  /// After `ended`: forgets the old session and begins a new one.
  void reopen(Instant now);

  Instant next_deadline() const;

  /// The effects since the last call, in order. `spare` is memory for the next ones.
  std::vector<Effect> take_effects(std::vector<Effect> spare = {});
  bool has_effects() const;
  /// The effect since the last call, if there is one and it is a Transmit; nothing is taken
  /// otherwise.
  std::optional<Transmit> take_transmit();
  /// Memory for what is transmitted next, such as what was transmitted.
  void give_spare(std::string bytes);

  /// Known after the first Established.
  const wire::ServerHello& server() const;
  bool established() const;
  /// Why every call fails at the moment, if it does.
  const Error* failure() const;
  /// What the last attempt or connection that failed came to.
  const Error& last_trouble() const;
  std::size_t pending_count() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client::protocol
