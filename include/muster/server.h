#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/config.h"
#include "muster/error.h"
#include "muster/io_thread.h"
#include "muster/log.h"
#include "muster/result.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Every setting of a server; docs/operations.md explains how to size them.
struct ServerOptions {
  /// Where to listen: "host:port", "[ipv6]:port" or "unix:/path"; port 0: any free one. A host
  /// name stands for all its addresses; an empty host (":29500") for all of this machine, both
  /// IPv4 and IPv6. Loopback unless said otherwise.
  std::vector<std::string> listen = {"127.0.0.1:0"};
  /// A listening socket that somebody else has made; -1: none. `listen` means nothing then. Taken
  /// over when the start succeeds; it stays the caller's when not.
  int listening_socket = -1;
  /// Serve on addresses that are not loopback although nobody is authenticated.
  bool allow_unauthenticated = false;

  Duration heartbeat{std::chrono::seconds(1)};
  Duration session_timeout{std::chrono::seconds(15)};  ///< 5 s to 600 s, at least 5 heartbeats
  Duration grace{std::chrono::seconds(2)};
  Duration slack{std::chrono::milliseconds(500)};

  std::uint32_t key_bytes_max = 1024;
  std::uint32_t value_bytes_max = 16u << 20;  ///< at most 1 GiB
  std::uint64_t round_bytes_max = 256u << 20;
  std::uint32_t keys_per_operation_max = 1024;
  std::uint32_t parked_waits_max = 1024;  ///< per connection
  std::uint32_t connections_max = 16384;
  std::uint32_t world_size_max = 16384;
  std::uint32_t groups_per_namespace_max = 4096;
  std::uint64_t memory_bytes_max = 1ull << 30;
  std::uint64_t namespace_memory_bytes_max = 0;  ///< 0: as memory_bytes_max
  std::uint32_t hello_connections_max = 256;     ///< that have not said hello yet
  std::uint32_t hello_connections_per_address_max = 64;
  int listen_backlog = 65535;

  std::shared_ptr<IoThread> io_thread;  ///< none: a thread of its own
  /// After the last event the I/O thread looks for the next one for so long before it sleeps: to
  /// wake a core takes longer than most requests. It keeps a core busy for that time, and yields it
  /// to whoever else is to run there. 0: never; at most `busy_poll_max`. Of those who share the I/O
  /// thread the longest wish counts.
  Duration busy_poll{0};
  Logger logger;
  /// Asked before each request, on the I/O thread, so it must be quick: while it says true, what
  /// brings something to keep is refused (`resource_exhausted`), and all else goes on. For a
  /// program that knows that memory is short before it is out, as `musterd` does. May be empty.
  std::function<bool()> is_short_of_memory;
  /// Runs on the I/O thread, once, when the server has ended by itself, because memory was out in
  /// the midst of a request or the system refused what it cannot be without: what it kept is lost,
  /// its clients hear the ends of their connections. The `Server` is still to be destroyed, not
  /// from within. May be empty.
  std::function<void(const Error& why)> on_failure;
  /// Of the group that this process hosts the server for; -1: none. Errors at others name it.
  int hosting_rank = -1;
  /// As in StoreOptions.
  std::string label;
  /// This process does nothing else: no rank is lost with it, and errors do not name it as one
  /// that hosts the server. `musterd` says so.
  bool standalone = false;
};

/// A server inside this process; `musterd` is one in a process of its own. It keeps everything in
/// memory: who stops it loses it, and its clients are told.
class MUSTER_API Server {
 public:
  /// Binds and serves on the I/O thread.
  ///
  /// Blocks for the name look-up of `listen`, if any.
  ///
  /// errors  address_in_use, permission_denied (not loopback and not allowed), invalid_argument
  ///         (names the option), forked (the I/O thread is the parent's), resource_exhausted (no
  ///         memory left), unavailable (any other failure of the system)
  static Result<Server> start(ServerOptions options = {});

  /// Stops as `stop` with no time to wait for the clients.
  ~Server();
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;

  /// Where it listens, in the form that `Store::connect` takes, ports filled in.
  const std::vector<std::string>& addresses() const;
  /// The port of the first TCP address; 0: there is none.
  std::uint16_t port() const;
  std::uint64_t incarnation() const;

  /// Waits until no session but `own_sessions` and observers is left, at most for `timeout`, then
  /// tells the remaining clients `reason` and closes.
  ///
  /// returns  how many sessions of others were left
  std::uint64_t stop(std::string_view reason, Duration timeout = Duration{0},
                     std::uint64_t own_sessions = 0);

  class Impl;

 private:
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
