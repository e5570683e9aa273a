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
  /// Where to listen: "host:port", "[ipv6]:port", "unix:/path", or "unix:@name" without a file,
  /// which any user of this host may connect to. Port 0: any free port. A host
  /// name stands for all its addresses; an empty host (":29500") stands for all addresses of this
  /// machine, IPv4 and IPv6. With credentials, TCP is served by TLS, and at a Unix socket the
  /// system tells who comes; "plain:127.0.0.1:29400" is without TLS and asks nobody who he is:
  /// whoever reaches that loopback address has all rights.
  std::vector<std::string> listen = {"127.0.0.1:0"};
  /// A listening socket to use instead of `listen`; -1: none. The server takes ownership if the
  /// start succeeds.
  int listening_socket = -1;
  /// Allows addresses that are not loopback, although the server authenticates nobody. Not with
  /// credentials.
  bool allow_unauthenticated = false;

  /// The file of those who are known, docs/security.md; empty: none, and nobody is asked who he is.
  /// It is read again when it changes.
  std::string credentials_file;
  /// The same as a text, for a process that has made the key itself. Not both.
  std::string credentials;
  /// Keys are good for the server of this name alone: clients name it, too. May be empty.
  std::string server_name;
  /// Of the server, for clients that have certificates, in the form PEM, with the key of it; and
  /// who signs the certificates of clients.
  std::string certificate_file;
  std::string certificate_key_file;  ///< empty: it is in certificate_file
  std::string client_authorities_file;

  Duration heartbeat{std::chrono::seconds(1)};
  Duration session_timeout{std::chrono::seconds(15)};  ///< 5 s to 600 s, at least 5 heartbeats
  Duration grace{std::chrono::seconds(2)};
  Duration slack{std::chrono::milliseconds(500)};

  std::uint32_t key_bytes_max = 1024;
  std::uint32_t value_bytes_max = 16u << 20;  ///< at most 1 GiB
  std::uint64_t round_bytes_max = 256u << 20;
  std::uint32_t keys_per_operation_max = 1024;
  std::uint32_t parked_waits_max = 1024;  ///< per session
  std::uint32_t connections_max = 16384;
  std::uint32_t world_size_max = 16384;
  std::uint32_t groups_per_namespace_max = 4096;
  std::uint32_t namespaces_per_address_max = 256;  ///< that clients of one address have made
  /// A namespace in which nobody has been for so long goes with its keys; zero: it stays.
  Duration namespace_idle_lifetime{0};
  std::uint64_t memory_bytes_max = 1ull << 30;
  std::uint64_t namespace_memory_bytes_max = 0;  ///< 0: as memory_bytes_max
  /// Places for connections that have sent no hello yet, beside those of `connections_max`, of
  /// which they may have all that are free. When all are taken, a further one takes the place of
  /// the oldest one of the address that has most.
  std::uint32_t hello_connections_max = 1024;
  int listen_backlog = 4096;

  std::shared_ptr<IoThread> io_thread;  ///< none: the server starts its own
  /// How long the I/O thread polls for the next event before it sleeps. To wake a sleeping core
  /// takes longer than most requests. Polling keeps one core busy for that time, but yields it to
  /// other threads. 0: no polling; at most `busy_poll_max`. If stores and servers share an I/O
  /// thread, the longest time counts.
  Duration busy_poll{0};
  Logger logger;
  /// Called on the I/O thread before each request, so it must be quick. While it returns true, the
  /// server refuses requests that store something (`resource_exhausted`) and serves all others.
  /// For a program that notices early that memory is short, as `musterd` does. May be empty.
  std::function<bool()> is_short_of_memory;
  /// Called once, on the I/O thread, if the server ends by itself: memory ran out during a request,
  /// or the system refused a resource that it needs. Its data is lost and its connections are
  /// closed. The `Server` must still be destroyed, but not inside this call. May be empty.
  std::function<void(const Error& why)> on_failure;
  /// This process's rank in the group for which it hosts the server; -1: none. Errors at other
  /// processes name it.
  int hosting_rank = -1;
  /// As in StoreOptions.
  std::string label;
  /// This process only serves, as `musterd`: no rank is lost with it, so errors do not name it as a
  /// process that hosts the server.
  bool standalone = false;
};

/// How the credentials differ from those that were read before: names of identities.
struct CredentialChange {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::uint64_t identities_count = 0;  ///< that are known now
};

/// A server inside this process; `musterd` is a server in a process of its own. It keeps all data
/// in memory: the data is lost when it stops, and its clients are told so.
class MUSTER_API Server {
 public:
  /// Starts to listen, and serves on the I/O thread.
  ///
  /// Blocks only while it looks up host names in `listen`.
  ///
  /// errors  address_in_use, permission_denied (not loopback and not allowed), invalid_argument
  ///         (names the option), forked (the I/O thread belongs to the parent process),
  ///         resource_exhausted (no memory left), unavailable (any other failure of the system)
  static Result<Server> start(ServerOptions options = {});

  /// Stops, as `stop` with a timeout of zero.
  ~Server();
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;

  /// The addresses at which it listens, with their ports, as `Store::connect` takes them.
  const std::vector<std::string>& addresses() const;
  /// The port of the first TCP address; 0: there is no TCP address.
  std::uint16_t port() const;
  std::uint64_t incarnation() const;

  /// Waits for at most `timeout` until all sessions have ended except observers and as many as
  /// `own_sessions`. Then tells the remaining clients `reason` and stops.
  ///
  /// returns  the number of other sessions that had not ended
  std::uint64_t stop(std::string_view reason, Duration timeout = Duration{0},
                     std::uint64_t own_sessions = 0);

  /// Reads the credentials file and the certificates again. Sessions whose credential is gone end,
  /// others go on with what they may now. After an error everything stays as it was.
  ///
  /// errors   invalid_argument (what is wrong with the file), too_large, unavailable (it cannot be
  ///          read), unsupported (there is no file), forked
  /// threads  any
  Result<CredentialChange> reload_credentials();

  class Impl;

 private:
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
