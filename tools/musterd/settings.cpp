#include "settings.h"

#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "support/environment.h"
#include "support/units.h"

namespace musterd {
namespace {

using muster::ServerOptions;
using tools::parse_bytes;
using tools::parse_duration;
using tools::parse_number;
using tools::parse_switch;
using Values = std::vector<std::string>;
using Kind = Setting::Kind;

/// Applies one value through `parse` to `member`, if it fits.
template <class Member, class Parse>
Setting::Apply into(Member ServerOptions::*member, Parse parse) {
  return [member, parse](const Values& values, Configuration& to) {
    const auto parsed = parse(values.back());
    if (!parsed) return false;
    if constexpr (std::numeric_limits<Member>::is_integer) {
      if (*parsed > static_cast<std::uint64_t>(std::numeric_limits<Member>::max())) return false;
    }
    to.server.*member = static_cast<Member>(*parsed);
    return true;
  };
}

/// The help shows the defaults of the library, so they are written once.
template <class Member>
Member default_of(Member ServerOptions::*member) {
  const ServerOptions defaults;
  return defaults.*member;
}

Setting duration(std::string name, muster::Duration ServerOptions::*member, std::string help) {
  return {std::move(name),
          Kind::value,
          "DURATION",
          std::string("duration (") + tools::duration_forms + ")",
          tools::duration_text(default_of(member)),
          std::move(help),
          into(member, parse_duration)};
}

template <class Member>
Setting bytes(std::string name, Member ServerOptions::*member, std::string help,
              std::string fallback = {}) {
  if (fallback.empty()) fallback = tools::bytes_text(default_of(member));
  return {std::move(name),
          Kind::value,
          "BYTES",
          std::string("number of bytes (") + tools::bytes_forms + ")",
          std::move(fallback),
          std::move(help),
          into(member, parse_bytes)};
}

template <class Member>
Setting number(std::string name, Member ServerOptions::*member, std::string help) {
  const auto most = std::to_string(std::numeric_limits<Member>::max());
  return {std::move(name),
          Kind::value,
          "NUMBER",
          "whole number from 0 to " + most,
          std::to_string(default_of(member)),
          std::move(help),
          into(member, parse_number)};
}

Setting of_server(Setting setting) {
  setting.is_of_server = true;
  return setting;
}

bool apply_listen(const Values& values, Configuration& to) {
  to.server.listen = values;
  return true;
}

bool apply_listen_fd(const Values& values, Configuration& to) {
  const auto parsed = parse_number(values.back());
  if (!parsed || *parsed > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    return false;
  to.server.listening_socket = static_cast<int>(*parsed);
  return true;
}

bool apply_allow(const Values& values, Configuration& to) {
  const auto parsed = parse_switch(values.back());
  if (!parsed) return false;
  to.server.allow_unauthenticated = *parsed;
  return true;
}

/// "ADDRESS" or "ADDRESS=NAMESPACE".
bool apply_tcpstore(const Values& values, Configuration& to) {
  to.server.tcpstore.clear();
  for (const std::string& value : values) {
    muster::TcpStorePort port;
    const auto equals = value.find('=');
    port.address = value.substr(0, equals);
    if (equals != std::string::npos) port.name_space = value.substr(equals + 1);
    if (port.address.empty() || port.name_space.empty()) return false;
    to.server.tcpstore.push_back(std::move(port));
  }
  return true;
}

bool apply_allow_tcpstore(const Values& values, Configuration& to) {
  const auto parsed = parse_switch(values.back());
  if (!parsed) return false;
  to.server.allow_unauthenticated_tcpstore = *parsed;
  return true;
}

bool apply_dialect(const Values& values, Configuration& to) {
  using muster::TcpStoreDialect;
  constexpr std::pair<std::string_view, TcpStoreDialect> dialects[] = {
      {"first", TcpStoreDialect::first},
      {"second", TcpStoreDialect::second},
      {"newest", TcpStoreDialect::newest}};
  for (const auto& [name, dialect] : dialects) {
    if (values.back() != name) continue;
    to.server.tcpstore_dialect = dialect;
    return true;
  }
  return false;
}

bool apply_port_file(const Values& values, Configuration& to) {
  to.port_file = values.back();
  return true;
}

/// A name without a slash is one of those that systemd hands over, if there is such a file.
bool apply_credentials(const Values& values, Configuration& to) {
  to.server.credentials_file = values.back();
  if (values.back().empty()) return false;
  const char* const folder = std::getenv("CREDENTIALS_DIRECTORY");
  if (folder == nullptr || values.back().find('/') != std::string::npos) return true;
  const std::string handed_over = std::string(folder) + "/" + values.back();
  if (::access(handed_over.c_str(), F_OK) == 0) to.server.credentials_file = handed_over;
  return true;
}

Setting::Apply into_text(std::string ServerOptions::*member) {
  return [member](const Values& values, Configuration& to) {
    to.server.*member = values.back();
    return !values.back().empty();
  };
}

Setting http_file(std::string name, std::string HttpConfiguration::*member, std::string fallback,
                  std::string help) {
  return {std::move(name),
          Kind::value,
          "FILE",
          "file",
          std::move(fallback),
          std::move(help),
          [member](const Values& values, Configuration& to) {
            to.http.*member = values.back();
            return !values.back().empty();
          }};
}

bool apply_http(const Values& values, Configuration& to) {
  to.http.address = values.back();
  return values.back().find(':') != std::string::npos;
}

bool apply_http_names(const Values& values, Configuration& to) {
  to.http.names = values;
  return true;
}

bool apply_log_level(const Values& values, Configuration& to) {
  using muster::LogLevel;
  const std::string& word = values.back();
  if (word == "silent") {
    to.server.log_level.reset();
    return true;
  }
  const std::vector<std::pair<std::string, LogLevel>> levels = {{"debug", LogLevel::debug},
                                                                {"info", LogLevel::info},
                                                                {"warning", LogLevel::warning},
                                                                {"error", LogLevel::error}};
  for (const auto& [name, level] : levels) {
    if (name != word) continue;
    to.server.log_level = level;
    return true;
  }
  return false;
}

bool apply_log_format(const Values& values, Configuration& to) {
  const std::string& word = values.back();
  if (word != "text" && word != "json") return false;
  to.log_format = word == "json" ? LogFormat::json : LogFormat::text;
  return true;
}

Setting connections_max() {
  Setting setting = number("connections-max", &ServerOptions::connections_max,
                           "connections and sessions; an eighth more is a reserve for owners "
                           "(identities, addresses, users) that have less than their share");
  setting.apply = [apply = std::move(setting.apply)](const Values& values, Configuration& to) {
    to.connections_max_is_given = true;
    return apply(values, to);
  };
  return setting;
}

Setting hello_connections_max() {
  Setting setting = number("hello-connections-max", &ServerOptions::hello_connections_max,
                           "places of connections that have sent no hello yet, beside those above");
  setting.apply = [apply = std::move(setting.apply)](const Values& values, Configuration& to) {
    to.hello_connections_max_is_given = true;
    return apply(values, to);
  };
  return setting;
}

/// Where it serves, whom, and what it says.
std::vector<Setting> service_settings() {
  using O = ServerOptions;
  return {
      {"listen", Kind::values, "ADDRESS", "address", "127.0.0.1:29400",
       "where to listen: host:port, [ipv6]:port, unix:/path, or :port for all of this machine; "
       "port 0 is any free one; may be repeated; with credentials plain:127.0.0.1:port asks nobody "
       "who he is",
       apply_listen},
      {"listen-fd", Kind::value, "FD", "number of a file descriptor", "",
       "serve on this listening socket, instead of --listen", apply_listen_fd},
      {"allow-unauthenticated", Kind::on_off, "", "switch (write true or false)", "",
       "serve on addresses that other machines can reach, although nobody is authenticated",
       apply_allow},
      {"credentials", Kind::value, "FILE", "file", "",
       "who is known, and what he may: then TCP is served by TLS; read again when it changes",
       apply_credentials},
      {"server-name", Kind::value, "NAME", "name", "",
       "keys are good for the server of this name alone; clients name it, too",
       into_text(&O::server_name)},
      {"tls-certificate", Kind::value, "FILE", "file", "",
       "the server's certificate, for clients that have certificates",
       into_text(&O::certificate_file)},
      {"tls-key", Kind::value, "FILE", "file", "that of --tls-certificate",
       "the key of the certificate", into_text(&O::certificate_key_file)},
      {"tls-client-authorities", Kind::value, "FILE", "file", "",
       "who signs the certificates of clients", into_text(&O::client_authorities_file)},
      {"port-file", Kind::value, "FILE", "file", "",
       "write the first TCP port there when it is open, below it those of --tcpstore, and last "
       "that of --http; removed at a clean stop",
       apply_port_file},
      {"log-level", Kind::value, "LEVEL", "level (write debug, info, warning, error or silent)",
       "info", "debug, info, warning, error or silent", apply_log_level, true},
      {"log-format", Kind::value, "FORMAT", "format (write text or json)", "text",
       "text, or json: one object in each line", apply_log_format},
  };
}

/// For programs that use PyTorch's TCPStore.
std::vector<Setting> tcpstore_settings() {
  using O = ServerOptions;
  return {
      {"tcpstore", Kind::values, "ADDRESS[=NAMESPACE]",
       "address (host:port or host:port=namespace)", "",
       "serve programs that use PyTorch's TCPStore there, in a namespace of that name (tcpstore), "
       "without asking who they are; may be repeated",
       apply_tcpstore},
      {"allow-unauthenticated-tcpstore", Kind::on_off, "", "switch (write true or false)", "",
       "--tcpstore may be where other machines can reach it", apply_allow_tcpstore},
      {"tcpstore-dialect", Kind::value, "DIALECT", "dialect (write first, second or newest)",
       "first",
       "what clients of --tcpstore speak that do not say VALIDATE: first, as PyTorch 1 and 2.0; "
       "second, as PyTorch 2.1; newest: they are refused",
       apply_dialect},
      of_server(
          duration("tcpstore-idle-lifetime", &O::tcpstore_idle_lifetime,
                   "how long the keys of a --tcpstore stay when its last connection has ended")),
      of_server(bytes("tcpstore-memory-bytes-max", &O::tcpstore_memory_bytes_max,
                      "memory for the keys of all --tcpstore", "a quarter of --memory-bytes-max")),
  };
}

/// For browsers and monitoring.
std::vector<Setting> http_settings() {
  using H = HttpConfiguration;
  return {
      {"http", Kind::value, "HOST:PORT", "address (host:port)", "",
       "answer by HTTP there; other machines may reach it with TLS and tokens or certificates "
       "of clients, or with --allow-unauthenticated; port 0 is any free one",
       apply_http},
      {"http-host", Kind::values, "NAME", "name", "",
       "a name by which --http is asked for, beside localhost, the host of --http and the address "
       "itself; at all addresses also the machine's name; may be repeated",
       apply_http_names},
      http_file("http-tokens", &H::tokens_file, "",
                "--http asks for one of these tokens (musterctl keygen --http); read again at "
                "SIGHUP"),
      http_file("http-cert", &H::certificate_file, "",
                "--http speaks TLS, with this certificate; read again at SIGHUP"),
      http_file("http-key", &H::key_file, "that of --http-cert", "the key of that certificate"),
      http_file("http-client-ca", &H::authorities_file, "",
                "--http asks for a certificate that one of these has signed"),
  };
}

/// Times and limits.
std::vector<Setting> limit_settings() {
  using O = ServerOptions;
  std::vector<Setting> settings = {
      duration("heartbeat", &O::heartbeat, "time between two heartbeats of a client"),
      duration("session-timeout", &O::session_timeout,
               "silence after which a session is lost; 5s to 600s, at least 5 heartbeats"),
      duration("grace", &O::grace, "time to reconnect after a connection was closed"),
      duration("slack", &O::slack, "how long clients wait after a deadline for the decision"),
      duration("slow-round-log", &O::slow_round_log,
               "how long a collective waits for ranks before that is logged; 100ms to 1h"),
      connections_max(),
      bytes("memory-bytes-max", &O::memory_bytes_max, "memory for all that the server keeps"),
      bytes("namespace-memory-bytes-max", &O::namespace_memory_bytes_max,
            "the same, of one namespace", "all of it"),
      bytes("key-bytes-max", &O::key_bytes_max, "one key"),
      bytes("value-bytes-max", &O::value_bytes_max, "one value; at most 1GiB"),
      bytes("round-bytes-max", &O::round_bytes_max, "the values of one round together"),
      number("keys-per-operation-max", &O::keys_per_operation_max, "keys of one call"),
      number("parked-waits-max", &O::parked_waits_max, "waiting calls of one session"),
      number("world-size-max", &O::world_size_max, "ranks of one group"),
      number("groups-per-namespace-max", &O::groups_per_namespace_max, "groups of one namespace"),
      number("namespaces-per-address-max", &O::namespaces_per_address_max,
             "namespaces that clients of one address have made"),
      duration("namespace-idle-lifetime", &O::namespace_idle_lifetime,
               "a namespace in which nobody has been for so long goes with its keys; 0s: it stays"),
      hello_connections_max(),
  };
  settings.push_back(
      duration("busy-poll", &O::busy_poll,
               "how long to poll for the next event before sleeping; at most 100ms"));
  settings.push_back(number("listen-backlog", &O::listen_backlog,
                            "connections that the system queues; at most net.core.somaxconn"));
  for (Setting& setting : settings) setting.is_of_server = true;
  return settings;
}

std::vector<Setting> make_settings() {
  std::vector<Setting> all = service_settings();
  for (auto& further : {tcpstore_settings(), http_settings(), limit_settings()}) {
    all.insert(all.end(), further.begin(), further.end());
  }
  return all;
}

}  // namespace

std::string Setting::variable() const {
  std::string text = "MUSTER_";
  for (const char letter : name) {
    const bool is_small = letter >= 'a' && letter <= 'z';
    text += is_small ? static_cast<char>(letter - 'a' + 'A') : letter == '-' ? '_' : letter;
  }
  return text;
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = make_settings();
  return all;
}

const Setting* find_setting(const std::string& name) {
  for (const Setting& setting : settings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

std::vector<std::string> unread_variables() {
  std::vector<std::string> known = {"MUSTER_CONFIG",           "MUSTER_SERVER",
                                    "MUSTER_NAMESPACE",        "MUSTER_HOST_PID",
                                    "MUSTER_CREDENTIAL_FILE",  "MUSTER_CREDENTIAL",
                                    "MUSTER_CERTIFICATE_FILE", "MUSTER_CERTIFICATE_KEY_FILE",
                                    "MUSTER_AUTHORITIES_FILE"};
  for (const Setting& setting : settings()) known.push_back(setting.variable());
  return tools::unknown_variables(known);
}

}  // namespace musterd
