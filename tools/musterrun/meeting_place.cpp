#include "meeting_place.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "auth/same_user.h"
#include "base/random.h"
#include "base/secret/unshown.h"
#include "net/address/address.h"
#include "net/address/resolver.h"
#include "net/io_thread.h"

namespace musterrun {

using muster::Error;
using muster::ErrorCode;
using muster::Result;
namespace net = muster::net;

namespace {

constexpr muster::Duration look_up_again = std::chrono::seconds(1);

/// The address of this host from which that one is reached; empty: it is not. Sends nothing.
std::string own_address_towards(const net::SocketAddress& there) {
  const muster::base::FileHandle socket(::socket(there.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), there.data(), there.size()) != 0) return {};
  return net::SocketAddress::local_of(socket.get()).host();
}

/// Of several addresses of that host, one that is not of loopback is better.
std::string own_address_towards(const std::vector<net::SocketAddress>& there) {
  std::string best;
  for (const net::SocketAddress& each : there) {
    std::string own = own_address_towards(each);
    if (best.empty() || (is_loopback(best) && !own.empty())) best = std::move(own);
  }
  return best;
}

/// Whether that address is one of this host: then a socket can have it.
bool is_of_this_host(net::SocketAddress address) {
  address.set_port(0);
  const muster::base::FileHandle socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket && ::bind(socket.get(), address.data(), address.size()) == 0;
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

bool has_certificate() { return !variable("MUSTER_CERTIFICATE_FILE").empty(); }

}  // namespace

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1" || address == "localhost";
}

bool has_credential() {
  return !variable("MUSTER_CREDENTIAL_FILE").empty() || !variable("MUSTER_CREDENTIAL").empty() ||
         has_certificate();
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

struct MeetingPlace::State : std::enable_shared_from_this<State> {
  State(asio::io_context& its_context, const muster::launch::LaunchOptions& its_options,
        std::shared_ptr<muster::IoThread> its_thread, Handlers its_handlers)
      : context(its_context),
        options(its_options),
        io_thread(std::move(its_thread)),
        handlers(std::move(its_handlers)),
        next_look(its_context),
        may_host(options.placement.node_rank.value_or(0) == 0) {}

  Result<void> open();
  void look_up();
  void looked_up(const net::Resolved& found);
  Result<void> host_at(const std::vector<net::SocketAddress>& own);
  Result<void> start(muster::ServerOptions how);

  asio::io_context& context;
  const muster::launch::LaunchOptions& options;
  const std::shared_ptr<muster::IoThread> io_thread;
  const Handlers handlers;
  asio::steady_timer next_look;
  const bool may_host;
  bool is_reached = false;
  bool is_closed = false;
  bool is_looking_up = false;
  net::Address there;
  std::string address;
  std::optional<std::string> own_host;
  std::string missing;
  std::optional<muster::Server> server;
  std::vector<std::function<void(const std::string&)>> await_own_host;
};

Result<void> MeetingPlace::State::open() {
  if (options.rendezvous.endpoint.empty()) {
    own_host = "127.0.0.1";
    muster::ServerOptions how;
    // On one host the ends of processes are seen at once: heartbeats are for those that hang.
    how.heartbeat = std::chrono::seconds(3);
    if (!give_key(how)) {
      if (auto served = serve_this_user(how); !served) return served;
    }
    if (auto started = start(std::move(how)); !started) return started;
    address = server->addresses().front();
    return {};
  }
  address = options.rendezvous.endpoint;
  auto parsed = net::parse_address(address);
  if (!parsed) return std::move(parsed).error();
  there = *std::move(parsed);
  if (const auto number = net::resolve_number(there.host, there.port)) {
    looked_up(*number);
  } else {
    missing = "the name " + there.host + " is being looked up; no name server has answered yet";
    look_up();
  }
  return {};
}

void MeetingPlace::State::look_up() {
  if (is_closed || is_looking_up) return;
  is_looking_up = true;
  net::resolve_async(io_thread->impl().loop().mailbox(), there.host, there.port,
                     [weak = weak_from_this()](const net::Resolved& found) {
                       const auto self = weak.lock();
                       if (!self) return;
                       // A server does not start within a turn of the loop that serves it.
                       asio::post(self->context, [self, found] {
                         self->is_looking_up = false;
                         if (!self->is_closed) self->looked_up(found);
                       });
                     });
}

void MeetingPlace::State::looked_up(const net::Resolved& found) {
  std::vector<net::SocketAddress> own;
  std::copy_if(found.addresses.begin(), found.addresses.end(), std::back_inserter(own),
               is_of_this_host);
  if (const std::string host = own_address_towards(found.addresses); !host.empty()) own_host = host;
  for (const auto& handler : std::exchange(await_own_host, {})) handler(own_host.value_or(""));
  if (is_reached) return;
  if (found.addresses.empty()) {
    missing = "the name has no address: " + found.detail;
  } else if (server) {
    missing = "the server of this launcher has not answered yet";
  } else if (!own.empty() && may_host && has_certificate()) {
    missing = "no musterd answers at " + address +
              "; this launcher hosts no server, which would know ranks by a key, and not by a "
              "certificate";
  } else if (!own.empty() && may_host) {
    missing = "the server at " + address + " has not answered yet";
    if (auto hosted = host_at(own); !hosted) return handlers.on_failure(hosted.error());
  } else if (may_host || options.placement.node_rank.value_or(0) != 0) {
    missing = "no launcher serves " + address + "; ";
    if (options.placement.node_rank.value_or(0) != 0) {
      missing += "the one with --node-rank 0 does, and this one has --node-rank " +
                 std::to_string(*options.placement.node_rank);
    } else {
      missing += "the one on that host does, and this host does not have the address " +
                 found.addresses.front().host();
    }
  }
  next_look.expires_after(look_up_again);
  next_look.async_wait([self = shared_from_this()](const asio::error_code& failed) {
    if (!failed) self->look_up();
  });
}

Result<void> MeetingPlace::State::host_at(const std::vector<net::SocketAddress>& own) {
  muster::ServerOptions how;
  for (const net::SocketAddress& each : own) how.listen.push_back(to_string(each));
  how.allow_unauthenticated = options.rendezvous.allow_unauthenticated;
  give_key(how);
  auto started = start(std::move(how));
  if (!started && started.error().code == ErrorCode::address_in_use) return {};
  const auto is_for_others = [this](const net::SocketAddress& each) {
    return net::note_on_loopback(there.host, each).empty();
  };
  if (started && options.placement.nodes.max > 1 &&
      std::none_of(own.begin(), own.end(), is_for_others)) {
    handlers.on_notice(net::note_on_loopback(there.host, own.front()) +
                       ": launchers of other hosts do not come. Correct /etc/hosts, or give "
                       "--rendezvous with an address");
  }
  return started;
}

Result<void> MeetingPlace::State::start(muster::ServerOptions how) {
  how.io_thread = io_thread;
  how.label = "musterrun";
  auto started = muster::Server::start(std::move(how));
  if (!started) return std::move(started).error();
  server = *std::move(started);
  return {};
}

MeetingPlace::MeetingPlace(asio::io_context& context, const muster::launch::LaunchOptions& options,
                           std::shared_ptr<muster::IoThread> io_thread, Handlers handlers)
    : state_(std::make_shared<State>(context, options, std::move(io_thread), std::move(handlers))) {
}

MeetingPlace::~MeetingPlace() {
  state_->is_closed = true;
  state_->next_look.cancel();
  state_->server.reset();
}

Result<void> MeetingPlace::open() { return state_->open(); }

void MeetingPlace::reached() {
  state_->is_reached = true;
  state_->next_look.cancel();
  if (!state_->own_host) state_->look_up();
}

const std::string& MeetingPlace::address() const { return state_->address; }

void MeetingPlace::with_own_host(std::function<void(const std::string& host)> handler) {
  if (state_->own_host || !state_->is_looking_up) return handler(state_->own_host.value_or(""));
  state_->await_own_host.push_back(std::move(handler));
}

bool MeetingPlace::is_hosted() const { return state_->server.has_value(); }

std::string MeetingPlace::missing() const { return state_->missing; }

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
