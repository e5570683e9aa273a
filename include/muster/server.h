#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/config.h"
#include "muster/error.h"
#include "muster/io_thread.h"
#include "muster/log.h"
#include "muster/metrics.h"
#include "muster/result.h"
#include "muster/types.h"
#include "muster/watch.h"

MUSTER_BEGIN_NAMESPACE

/// A port for programs that use PyTorch's TCPStore: it speaks their protocol and asks nobody who he
/// is, whatever the credentials say. docs/tcpstore.md tells what it serves.
struct TcpStorePort {
  /// A TCP address in the form of `ServerOptions::listen`; port 0: any free port.
  std::string address = "127.0.0.1:0";
  /// The keys of the programs that come here are in this namespace.
  std::string name_space = "tcpstore";
  /// A listening socket to use instead of `address`; -1: none. The server takes ownership if the
  /// start succeeds.
  int listening_socket = -1;
};

/// How the commands of TCPStore are numbered.
enum class TcpStoreDialect : std::uint8_t {
  first,   ///< as PyTorch 1 and 2.0 do
  newest,  ///< as PyTorch 2.2 and later do, whose clients say VALIDATE before anything else
  second,  ///< as PyTorch 2.1 does
};

/// Every setting of a server; docs/operations.md explains how to size them.
struct ServerOptions {
  /// Where to listen: "host:port", "[ipv6]:port", "unix:/path", or "unix:@name" without a file,
  /// which any user of this host may connect to. Port 0: any free port. A host name stands for all
  /// its addresses; an empty host (":29500") stands for all addresses of this machine, IPv4 and
  /// IPv6. With credentials, TCP is served by TLS, and at a Unix socket the system tells who comes;
  /// "plain:127.0.0.1:29400" is without TLS and asks nobody who he is: whoever reaches that
  /// loopback address has all rights.
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
  /// who signs the certificates of clients. These files are read again when they change, and the
  /// server warns from 14 days before one of their certificates expires.
  std::string certificate_file;
  std::string certificate_key_file;  ///< empty: it is in certificate_file
  std::string client_authorities_file;

  /// More ports, for programs that use TCPStore; none by default.
  std::vector<TcpStorePort> tcpstore;
  /// Allows addresses in `tcpstore` that are not loopback, also with credentials.
  bool allow_unauthenticated_tcpstore = false;
  /// What a client of such a port speaks that does not begin with VALIDATE; `newest`: it is
  /// refused.
  TcpStoreDialect tcpstore_dialect = TcpStoreDialect::first;
  /// How long the namespace of such a port is kept, with its keys, when its last connection is
  /// closed. Zero: it is removed with its last connection, so that a job that restarts finds
  /// nothing of its last run. At most a year.
  Duration tcpstore_idle_lifetime{0};
  /// For the keys and values of all these ports together; 0: a quarter of `memory_bytes_max`.
  std::uint64_t tcpstore_memory_bytes_max = 0;

  Duration heartbeat{std::chrono::seconds(1)};
  Duration session_timeout{std::chrono::seconds(15)};  ///< 5 s to 600 s, at least 5 heartbeats
  Duration grace{std::chrono::seconds(2)};
  Duration slack{std::chrono::milliseconds(500)};

  std::uint32_t key_bytes_max = 1024;
  std::uint32_t value_bytes_max = 16u << 20;  ///< at most 1 GiB
  std::uint64_t round_bytes_max = 256u << 20;
  std::uint32_t keys_per_operation_max = 1024;
  std::uint32_t parked_waits_max = 1024;  ///< per session
  /// Connections and sessions. An eighth more is a reserve for owners (identities, addresses,
  /// users) that have less than their share; see `connections_at_most`.
  std::uint32_t connections_max = 16384;
  std::uint32_t world_size_max = 16384;
  std::uint32_t groups_per_namespace_max = 4096;
  std::uint32_t namespaces_per_address_max = 256;  ///< that clients of one address have made
  /// A namespace in which nobody has been for so long goes with its keys; zero: it stays.
  Duration namespace_idle_lifetime{0};
  /// For all that the server keeps. Where the system gives the process less than 1.125 times of it
  /// and 64 MiB (memory cgroup, RLIMIT_AS), it is reduced to what fits, but not below 14 MiB.
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
  /// The least important level that `logger` is given; none: nothing. Operators may change it.
  std::optional<LogLevel> log_level = LogLevel::debug;
  /// How long a collective waits for some of its ranks before that is logged, and how often it is
  /// logged again; 100 ms to an hour.
  Duration slow_round_log{std::chrono::seconds(10)};
  /// How many lines `logger` was given and could not write, since the start. Called on the I/O
  /// thread, at most twice a second, while somebody looks at `metrics()`. May be empty.
  std::function<std::uint64_t()> log_lines_dropped;
  /// Called on the I/O thread before each request, so it must be quick. While it returns true, the
  /// server refuses requests that store something (`resource_exhausted`) and serves all others.
  /// For a program that notices early that memory is short, as `musterd` does. May be empty.
  std::function<bool()> is_short_of_memory;
  /// Called once, on the I/O thread, if the server ends by itself: memory ran out during a request,
  /// or the system refused a resource that it needs. Its data is lost and its connections are
  /// closed. The `Server` must still be destroyed, but not inside this call. May be empty.
  std::function<void(const Error& why)> on_failure;
  /// Called on the I/O thread when an operator asks for the server's end (`muster::drain`):
  /// newcomers are refused from now on. With an empty reason when that is cancelled. May be empty.
  std::function<void(const std::string& reason)> on_draining;
  /// Called on the I/O thread when an operator has asked for the server's end (`muster::drain`) and
  /// all sessions have ended, or the time for that is over. The server serves on, and refuses
  /// newcomers, until it is stopped, but not inside this call. May be empty.
  std::function<void(const std::string& reason)> on_drained;
  /// This process's rank in the group for which it hosts the server; -1: none. Errors at other
  /// processes name it.
  int hosting_rank = -1;
  /// As in StoreOptions.
  std::string label;
  /// This process only serves, as `musterd`: no rank is lost with it, so errors do not name it as a
  /// process that hosts the server.
  bool standalone = false;
};

/// The largest number of connections that a server with these options has at the same time: those
/// of `connections_max`, of its reserve and of operators, and those without a hello. Each takes a
/// file descriptor; a server needs some more for listeners and files.
MUSTER_API std::uint64_t connections_at_most(const ServerOptions& options);

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
  /// The ports of `ServerOptions::tcpstore`, in its order.
  const std::vector<std::uint16_t>& tcpstore_ports() const;
  std::uint64_t incarnation() const;

  /// Waits for at most `timeout` until all sessions have ended except observers and as many as
  /// `own_sessions`. Then tells the remaining clients `reason` and stops. A second call returns 0,
  /// and shortens the wait of the first one to its own `timeout`.
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

  /// Changes settings of the running server to what they are in `options`. The log tells which have
  /// changed, and which do so with a restart only.
  ///
  /// names    of the settings that are meant, as musterd's flags: "memory-bytes-max"; of others
  ///          nothing is looked at but whether `options` are valid
  /// who      changes them, for the log; empty: the program that has the server
  /// errors   invalid_argument (names an option that is wrong), forked
  /// threads  any
  Result<void> change_settings(const ServerOptions& options, const std::vector<std::string>& names,
                               std::string_view who = {});

  /// What it counts, as Prometheus reads it.
  ///
  /// threads  any
  Metrics metrics() const;

  /// What is going on in it.
  ///
  /// threads  any
  Watch watch() const;

  /// Gives the logger a line of the program's own, if its level is logged.
  ///
  /// threads  any
  void log(LogLevel level, std::string_view line) const;

  class Impl;

 private:
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
