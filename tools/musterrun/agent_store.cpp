#include "agent_store.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <string_view>

#include "meeting_place.h"

namespace musterrun {

using muster::Result;
using muster::launch::Importance;

namespace {

/// Of all ranks, each with several connections; half of them are for one port.
constexpr std::uint32_t connections_max = 1u << 17;

bool is_ipv6(const std::string& host) { return host.find(':') != host.npos; }

bool is_name(const std::string& host) {
  in_addr number{};
  return host != "localhost" && !is_ipv6(host) && ::inet_pton(AF_INET, host.c_str(), &number) != 1;
}

/// Where ranks look for it and, of several nodes, nowhere else: but a name may mean another address
/// to other nodes than here.
std::string address_of(const AgentStore::Options& options) {
  std::string host = options.host;
  if (options.has_other_nodes && is_name(host)) host.clear();
  if (is_ipv6(host)) host = "[" + host + "]";
  return host + ":" + std::to_string(options.port);
}

}  // namespace

Result<AgentStore> AgentStore::open(Options options) {
  muster::ServerOptions server;
  if (auto served = serve_this_user(server); !served) return std::move(served).error();
  server.tcpstore = {{address_of(options), "tcpstore"}};
  server.allow_unauthenticated_tcpstore = options.others_may_reach;
  if (options.dialect == muster::launch::TcpStoreDialect::second)
    server.tcpstore_dialect = muster::TcpStoreDialect::second;
  server.tcpstore_idle_lifetime = std::chrono::hours(24 * 365);  // the attempt's
  server.tcpstore_memory_bytes_max = server.memory_bytes_max;
  server.connections_max = connections_max;
  server.io_thread = std::move(options.io_thread);
  server.label = "musterrun";
  server.logger = [say = options.say](muster::LogLevel level, std::string_view line) {
    if (level >= muster::LogLevel::warning)
      say(Importance::notice, "TCPStore: " + std::string(line));
  };
  server.on_failure = [say = options.say](const muster::Error& why) {
    say(Importance::failure, "the TCPStore of torch is gone: " + why.message());
  };
  auto started = muster::Server::start(std::move(server));
  if (!started) return std::move(started).error();
  return AgentStore(*std::move(started));
}

}  // namespace musterrun
