#include "server/settings.h"

#include <algorithm>
#include <string>

#include "base/failure.h"
#include "base/random.h"
#include "base/secret/unshown.h"
#include "base/text.h"
#include "net/address/address.h"
#include "net/address/socket_address.h"

namespace muster::server {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration session_timeout_min = seconds(5);
constexpr Duration session_timeout_max = seconds(600);
constexpr int heartbeats_per_session_timeout = 5;
/// In a request of TCPStore's: the lengths of a key and of its value.
constexpr std::uint64_t bytes_beside_key = 16;
constexpr Duration heartbeat_min = std::chrono::milliseconds(10);

/// Collects the first thing that is wrong.
class Check {
 public:
  void number(const char* option, std::uint64_t value, std::uint64_t min, std::uint64_t max) {
    if (value >= min && value <= max) return;
    fail(option, std::to_string(value) + " is not within " + std::to_string(min) + " to " +
                     std::to_string(max));
  }

  void duration(const char* option, Duration value, Duration min, Duration max) {
    if (value >= min && value <= max) return;
    fail(option, base::in_seconds(value) + " is not within " + base::in_seconds(min) + " to " +
                     base::in_seconds(max));
  }

  void fail(const char* option, const std::string& why) {
    if (error_) return;
    error_.emplace();
    error_->code = ErrorCode::invalid_argument;
    error_->detail = std::string(option) + ": " + why;
  }

  void refuse(std::optional<Error> refused) {
    if (!error_) error_ = std::move(refused);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<Error> error_;
};

void check_times(Check& check, const ServerOptions& options) {
  check.duration("session_timeout", options.session_timeout, session_timeout_min,
                 session_timeout_max);
  check.duration("heartbeat", options.heartbeat, heartbeat_min, session_timeout_max);
  if (options.heartbeat * heartbeats_per_session_timeout > options.session_timeout) {
    check.fail("heartbeat", "session_timeout must be at least " +
                                std::to_string(heartbeats_per_session_timeout) +
                                " heartbeats long");
  }
  check.duration("grace", options.grace, Duration::zero(), options.session_timeout);
  check.duration("slack", options.slack, std::chrono::milliseconds(1), minutes(1));
  check.duration("slow_round_log", options.slow_round_log, std::chrono::milliseconds(100),
                 std::chrono::hours(1));
  check.duration("busy_poll", options.busy_poll, Duration::zero(), busy_poll_max);
}

void check_limits(Check& check, const ServerOptions& options) {
  constexpr std::uint64_t gigabyte = 1U << 30;
  check.number("key_bytes_max", options.key_bytes_max, 1, 1U << 20);
  check.number("value_bytes_max", options.value_bytes_max, 1, gigabyte);
  check.number("round_bytes_max", options.round_bytes_max, 1, 2 * gigabyte);
  check.number("keys_per_operation_max", options.keys_per_operation_max, 1, 65536);
  check.number("parked_waits_max", options.parked_waits_max, 1, 1U << 20);
  check.number("connections_max", options.connections_max, 1, 1U << 20);
  check.number("world_size_max", options.world_size_max, 1, 1U << 20);
  check.number("groups_per_namespace_max", options.groups_per_namespace_max, 1, 1U << 24);
  check.number("namespaces_per_address_max", options.namespaces_per_address_max, 1, 1U << 20);
  check.duration("namespace_idle_lifetime", options.namespace_idle_lifetime, Duration::zero(),
                 std::chrono::hours(24 * 365));
  check.number("memory_bytes_max", options.memory_bytes_max, 1U << 20, std::uint64_t{1} << 50);
  check.number("namespace_memory_bytes_max", options.namespace_memory_bytes_max, 0,
               options.memory_bytes_max);
  check.number("hello_connections_max", options.hello_connections_max, 1, 1U << 20);
  if (options.listen_backlog < 1) check.fail("listen_backlog", "it must be above zero");
  if (options.listen.empty() && options.listening_socket < 0) {
    check.fail("listen", "there is no address");
  }
  if (options.listening_socket < -1) check.fail("listening_socket", "it is no descriptor");
  if (options.label.size() > wire::name_bytes_max) {
    check.fail("label", std::to_string(options.label.size()) + " bytes are more than " +
                            std::to_string(wire::name_bytes_max));
  }
  check.refuse(base::refuse_secret("label", options.label));
}

void check_credentials(Check& check, const ServerOptions& options) {
  check.refuse(base::refuse_secret("server_name", options.server_name));
  check.refuse(base::refuse_secret_path("credentials_file", options.credentials_file));
  check.refuse(base::refuse_secret_path("certificate_file", options.certificate_file));
  check.refuse(base::refuse_secret_path("certificate_key_file", options.certificate_key_file));
  check.refuse(
      base::refuse_secret_path("client_authorities_file", options.client_authorities_file));
  if (!has_credentials(options)) {
    const auto needs = [&check](const char* option, const std::string& value) {
      if (!value.empty()) check.fail(option, "it means nothing without credentials");
    };
    needs("server_name", options.server_name);
    needs("certificate_file", options.certificate_file);
    needs("certificate_key_file", options.certificate_key_file);
    needs("client_authorities_file", options.client_authorities_file);
    return;
  }
  if (!options.credentials_file.empty() && !options.credentials.empty()) {
    check.fail("credentials", "the credentials are given twice: by a file and as a text");
  }
  if (options.allow_unauthenticated) {
    check.fail("allow_unauthenticated", "there are credentials: whoever comes is asked who he is");
  }
  if (options.certificate_file.empty() != options.client_authorities_file.empty()) {
    check.fail("certificate_file",
               "clients with certificates need both a certificate of the server and "
               "client_authorities_file");
  }
  if (options.certificate_file.empty() && !options.certificate_key_file.empty()) {
    check.fail("certificate_key_file", "it needs certificate_file");
  }
}

void check_tcpstore(Check& check, const ServerOptions& options) {
  for (const TcpStorePort& port : options.tcpstore) {
    const Result<net::Address> parsed = net::parse_address(port.address);
    if (!parsed) {
      check.fail("tcpstore", parsed.error().detail);
    } else if (parsed->is_unix()) {
      check.fail("tcpstore", "its clients know TCP addresses alone, not " + port.address);
    }
    if (port.listening_socket < -1) check.fail("tcpstore", "the listening socket is none");
    const std::size_t bytes = port.name_space.size();
    if (bytes == 0 || bytes > wire::name_bytes_max) {
      check.fail("tcpstore", "the name of a namespace has 1 to " +
                                 std::to_string(wire::name_bytes_max) + " bytes, not " +
                                 std::to_string(bytes));
    }
  }
  check.duration("tcpstore_idle_lifetime", options.tcpstore_idle_lifetime, Duration::zero(),
                 std::chrono::hours(24 * 365));
  check.number("tcpstore_memory_bytes_max", options.tcpstore_memory_bytes_max, 0,
               options.memory_bytes_max);
}

/// Whether somebody may come by TLS: at any address but a Unix socket's and a plain one.
bool speaks_tls(const ServerOptions& options) {
  if (options.listening_socket >= 0) {
    return !net::SocketAddress::local_of(options.listening_socket).is_unix();
  }
  return std::any_of(options.listen.begin(), options.listen.end(), [](const std::string& address) {
    const Result<net::Address> parsed = net::parse_address(address);
    return !address.starts_with("plain:") && !(parsed && parsed->is_unix());
  });
}

Result<std::shared_ptr<Door>> open_door(const ServerOptions& options) {
  if (!has_credentials(options)) return std::shared_ptr<Door>();
  DoorOptions door;
  door.file = options.credentials_file;
  door.text = options.credentials;
  door.server_name = base::without_line_end(options.server_name);
  door.speaks_tls = speaks_tls(options);
  door.certificates.certificate = options.certificate_file;
  door.certificates.key = options.certificate_key_file;
  door.certificates.authorities = options.client_authorities_file;
  return Door::open(std::move(door));
}

wire::ServerLimits limits_of(const ServerOptions& options) {
  wire::ServerLimits limits;
  limits.key_bytes_max = options.key_bytes_max;
  limits.value_bytes_max = options.value_bytes_max;
  limits.round_bytes_max = options.round_bytes_max;
  limits.keys_per_operation_max = options.keys_per_operation_max;
  limits.parked_waits_max = options.parked_waits_max;
  limits.world_size_max = options.world_size_max;
  limits.heartbeat = options.heartbeat;
  limits.session_timeout = options.session_timeout;
  limits.grace = options.grace;
  limits.slack = options.slack;
  return limits;
}

tcpstore::Dialect dialect_of(TcpStoreDialect dialect) {
  switch (dialect) {
    case TcpStoreDialect::first: return tcpstore::Dialect::first;
    case TcpStoreDialect::second: return tcpstore::Dialect::second;
    case TcpStoreDialect::newest: break;
  }
  return tcpstore::Dialect::newest;
}

std::vector<tcpstore::Port> tcpstore_ports_of(const ServerOptions& options,
                                              const core::Options& core) {
  std::vector<tcpstore::Port> ports;
  for (const TcpStorePort& option : options.tcpstore) {
    tcpstore::Port& port = ports.emplace_back();
    port.name_space = option.name_space;
    port.unit = {net::UnitId::Kind::port, ports.size()};
    port.unit_name = "TCPStore port of namespace " + option.name_space;
    port.terms.idle_lifetime = core.rim.tcpstore_idle_lifetime;
    port.terms.limits.memory_bytes = core.rim.tcpstore_memory_bytes_max;
    port.fallback = dialect_of(options.tcpstore_dialect);
    port.limits.key_bytes_max = options.key_bytes_max;
    port.limits.value_bytes_max = options.value_bytes_max;
    port.limits.keys_max = core.guest_keys_max;
    port.limits.request_bytes_max =
        options.value_bytes_max +
        std::uint64_t{core.guest_keys_max} * (options.key_bytes_max + bytes_beside_key);
  }
  return ports;
}

}  // namespace

Duration user_timeout_of(const core::Options& options) {
  return std::max(options.limits.session_timeout,
                  options.connections.stall_time_max + std::chrono::seconds(5));
}

bool has_credentials(const ServerOptions& options) {
  return !options.credentials_file.empty() || !options.credentials.empty();
}

Result<core::Options> make_core_options(const ServerOptions& options) {
  Check check;
  check_times(check, options);
  check_limits(check, options);
  if (check.error()) return *check.error();
  core::Options core;
  core.limits = limits_of(options);
  core.memory_bytes_max = options.memory_bytes_max;
  core.kept_memory_bytes_max = options.memory_bytes_max / 4;
  core.namespace_memory_bytes_max = options.namespace_memory_bytes_max != 0
                                        ? options.namespace_memory_bytes_max
                                        : options.memory_bytes_max;
  core.sessions_max = options.connections_max;
  core.connections.connections_max = options.connections_max;
  core.connections.hello_connections_max = options.hello_connections_max;
  core.groups_per_namespace_max = options.groups_per_namespace_max;
  core.name_spaces.per_unit_max = options.namespaces_per_address_max;
  core.name_spaces.idle_lifetime = options.namespace_idle_lifetime;
  core.slow_round_log = options.slow_round_log;
  core.rim.log_level = options.log_level;
  core.rim.busy_poll = options.busy_poll;
  core.rim.listen_backlog = options.listen_backlog;
  core.rim.tcpstore_idle_lifetime = options.tcpstore_idle_lifetime;
  core.rim.tcpstore_memory_bytes_max = options.tcpstore_memory_bytes_max != 0
                                           ? options.tcpstore_memory_bytes_max
                                           : options.memory_bytes_max / 4;
  return core;
}

Result<Settings> make_settings(const ServerOptions& options) {
  Result<core::Options> core_options = make_core_options(options);
  if (!core_options) return std::move(core_options).error();
  Check check;
  check_credentials(check, options);
  check_tcpstore(check, options);
  if (check.error()) return *check.error();
  Result<std::shared_ptr<Door>> door = open_door(options);
  if (!door) return std::move(door).error();
  Settings settings;
  settings.core = *std::move(core_options);
  settings.is_alone = options.standalone;
  settings.door = std::move(*door);
  settings.logger = options.logger;
  settings.is_short_of_memory = options.is_short_of_memory;
  settings.on_failure = options.on_failure;
  settings.log_lines_dropped = options.log_lines_dropped;
  settings.on_draining = options.on_draining;
  settings.on_drained = options.on_drained;
  settings.metrics = std::make_shared<Metrics::Source>();
  settings.watch = std::make_shared<Watch::Source>();
  core::Options& core = settings.core;
  settings.tcpstore = tcpstore_ports_of(options, core);
  const auto incarnation = base::random_u64();
  if (!incarnation || !base::fill_random(core.hash_key.data(), sizeof(core.hash_key))) {
    return base::failure(ErrorCode::unavailable, std::string(base::no_random));
  }
  core.incarnation = std::max<std::uint64_t>(*incarnation, 1);  // 0: none
  if (!options.standalone) {
    core.host.process = base::own_process(options.label);
    core.host.rank = options.hosting_rank;
    if (settings.door != nullptr) core.host.tenant = settings.door->only_tenant();
  }
  return settings;
}

}  // namespace muster::server
