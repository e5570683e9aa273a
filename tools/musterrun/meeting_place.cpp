#include "meeting_place.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "auth/same_user.h"
#include "base/random.h"
#include "base/secret/unshown.h"

namespace musterrun {

using muster::Error;
using muster::ErrorCode;
using muster::Result;

namespace {

struct HostAndPort {
  std::string host;
  std::string port;
};

HostAndPort split(const std::string& address) {
  const auto colon = address.rfind(':');
  HostAndPort parts{address.substr(0, colon), address.substr(colon + 1)};
  if (parts.host.size() > 2 && parts.host.front() == '[')
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

/// The address of this host from which that one is reached; empty: it is not. Sends nothing.
std::string own_address_towards(const addrinfo& there) {
  const muster::base::FileHandle socket(::socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), there.ai_addr, there.ai_addrlen) != 0) return {};
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char text[NI_MAXHOST] = {};
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return {};
  return text;
}

/// Of several addresses of that host, one that is not of loopback is better.
std::string own_address_towards(const HostAndPort& there) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(there.host.c_str(), there.port.c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &::freeaddrinfo);
  std::string best;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    std::string own = own_address_towards(*each);
    if (best.empty() || (is_loopback(best) && !own.empty())) best = std::move(own);
  }
  return best;
}

/// Whether that address is one of this host: then a socket can have it.
bool is_of_this_host(const HostAndPort& there) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(there.host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &::freeaddrinfo);
  const muster::base::FileHandle socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket && ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
}

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : std::string(muster::base::without_line_end(text));
}

/// The launchers and ranks have it from the environment, so the server has it, too.
///
/// returns  whether there is one
bool give_key(muster::ServerOptions& to) {
  to.credentials_file = variable("MUSTER_CREDENTIAL_FILE");
  if (to.credentials_file.empty()) to.credentials = variable("MUSTER_CREDENTIAL");
  if (to.credentials_file.empty() && to.credentials.empty()) return false;
  to.server_name = variable("MUSTER_SERVER_NAME");
  to.allow_unauthenticated = false;  // nobody is
  return true;
}

}  // namespace

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1" || address == "localhost";
}

bool has_key() {
  return !variable("MUSTER_CREDENTIAL_FILE").empty() || !variable("MUSTER_CREDENTIAL").empty();
}

Result<void> serve_this_user(muster::ServerOptions& to) {
  const auto number = muster::base::random_u64();
  if (!number) {
    Error error;
    error.code = ErrorCode::unavailable;
    error.detail = muster::base::no_random;
    return error;
  }
  char name[48];
  std::snprintf(name, sizeof name, "unix:@musterrun-%016" PRIx64, *number);
  to.listen = {name};
  to.credentials = muster::auth::credentials_of_user(::geteuid());
  return {};
}

Result<MeetingPlace> MeetingPlace::open(const muster::launch::LaunchOptions& options,
                                        const std::shared_ptr<muster::IoThread>& io_thread) {
  MeetingPlace place;
  muster::ServerOptions server;
  server.io_thread = io_thread;
  server.label = "musterrun";
  // On one host the ends of processes are seen at once: heartbeats are for those that hang.
  if (options.rendezvous.endpoint.empty()) server.heartbeat = std::chrono::seconds(3);
  if (!options.rendezvous.endpoint.empty()) {
    place.address_ = options.rendezvous.endpoint;
    const HostAndPort there = split(options.rendezvous.endpoint);
    place.own_host_ = own_address_towards(there);
    const bool may_host = options.placement.node_rank.value_or(0) == 0 && is_of_this_host(there);
    if (!may_host) return place;
    server.listen = {options.rendezvous.endpoint};
    server.allow_unauthenticated = options.rendezvous.allow_unauthenticated;
  }
  if (!give_key(server) && options.rendezvous.endpoint.empty()) {
    if (auto served = serve_this_user(server); !served) return std::move(served).error();
  }
  auto started = muster::Server::start(std::move(server));
  if (!started) {
    if (!options.rendezvous.endpoint.empty() && started.error().code == ErrorCode::address_in_use)
      return place;  // one stands there
    return std::move(started).error();
  }
  place.server_ = *std::move(started);
  if (options.rendezvous.endpoint.empty()) place.address_ = place.server_->addresses().front();
  return place;
}

const std::string& MeetingPlace::own_host() {
  if (own_host_.empty()) own_host_ = own_address_towards(split(address_));
  return own_host_;
}

Result<HeldPort> HeldPort::hold(int port) {
  HeldPort held;
  Error error;
  error.code = ErrorCode::resource_exhausted;
  held.socket_ = muster::base::FileHandle(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!held.socket_) {
    error.detail = std::string("no socket for MASTER_PORT: ") + std::strerror(errno);
    return error;
  }
  const int on = 1;
  ::setsockopt(held.socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(held.socket_.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) {
    error.code = ErrorCode::address_in_use;
    error.detail = "MASTER_PORT " + std::to_string(port) + ": " + std::strerror(errno) +
                   "; give another one with --master_port, or none";
    return error;
  }
  socklen_t size = sizeof any;
  ::getsockname(held.socket_.get(), reinterpret_cast<sockaddr*>(&any), &size);
  held.port_ = ntohs(any.sin_port);
  return held;
}

}  // namespace musterrun
