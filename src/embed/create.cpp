#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "base/monotonic_now.h"
#include "base/secret/unshown.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/group/process_group_impl.h"
#include "client/link/credential.h"
#include "embed/embedded_server.h"
#include "muster/process_group.h"
#include "net/address/address.h"
#include "net/address/resolver.h"
#include "net/io_thread.h"

// A group by host and port: rank 0 serves (or finds who serves) -> connect -> join -> the server or
// the session is lost before the group has formed: connect and join again. One deadline covers all
// of it.

MUSTER_BEGIN_NAMESPACE

using client::invalid_argument;
using client::protocol::Fate;
using embed::EmbeddedServer;

namespace {

constexpr std::chrono::seconds seconds_max = std::chrono::hours(24 * 365 * 100);

bool is_unix(std::string_view host) { return host.substr(0, 5) == "unix:"; }

std::string address_of(std::string_view host, std::uint16_t port) {
  std::string text(host);
  if (is_unix(host)) return text;
  if (host.find(':') != std::string_view::npos && host.front() != '[') text = "[" + text + "]";
  return text + ":" + std::to_string(port);
}

bool serves(int rank, const HostedGroupOptions& options) {
  return rank == 0 && options.host_server != HostServer::never;
}

/// Closes a listening socket that was taken over and that nobody serves.
class SocketGuard {
 public:
  explicit SocketGuard(int socket) : socket_(socket) {}
  ~SocketGuard() {
    if (socket_ >= 0) ::close(socket_);
  }
  SocketGuard(const SocketGuard&) = delete;
  SocketGuard& operator=(const SocketGuard&) = delete;
  void release() { socket_ = -1; }

 private:
  int socket_;
};

std::optional<Error> refusal_of(std::string_view host, std::uint16_t port, int rank, int world_size,
                                const HostedGroupOptions& options) {
  if (client::Handlers::is_inside_inline_handler()) {
    return client::failure(ErrorCode::would_deadlock,
                           "a blocking call from an inline handler; call it on another thread");
  }
  IoThread* const io = options.store.io_thread.get();
  if (io != nullptr && !io->impl().forked() && io->impl().would_deadlock()) {
    return client::failure(ErrorCode::would_deadlock,
                           "a blocking call on the I/O thread; call it on another one");
  }
  if (rank < 0 || rank >= world_size) {
    return invalid_argument("rank " + std::to_string(rank) + ": ranks are 0 to " +
                            std::to_string(world_size - 1));
  }
  const bool needs_port =
      !is_unix(host) && !(serves(rank, options) && options.listening_socket >= 0);
  if (needs_port && port == 0) return invalid_argument("port: above zero, all ranks must know it");
  if (is_unix(host) && port != 0) return invalid_argument("port: 0 with a Unix socket");
  if (serves(rank, options) && !client::certificates_of(options.store).certificate.empty()) {
    return invalid_argument(
        "certificate_file (MUSTER_CERTIFICATE_FILE): a server that rank 0 hosts knows its ranks by "
        "a key; give them one, or "
        "use a musterd");
  }
  if (options.timeout <= Duration::zero()) return invalid_argument("store_timeout: above zero");
  return std::nullopt;
}

/// Who was to serve at an address where nobody does.
Error not_served(Error error, int rank, const HostedGroupOptions& options) {
  const bool nobody = error.code == ErrorCode::unavailable && error.ranks.empty();
  if (!nobody || rank == 0 || options.host_server == HostServer::never) return error;
  error.ranks.emplace_back().rank = 0;
  error.rank_ranges = {{0, 0}};
  error.detail += "; rank 0 serves here, has it started?";
  return error;
}

/// The other ranks have not come to a server that only this host reaches.
Error not_reached(Error error, std::string_view host, const std::string& address) {
  const auto parsed = net::parse_address(address);
  if (error.code != ErrorCode::timed_out || !parsed || parsed->is_unix()) return error;
  const auto served = net::resolve_number(parsed->host, parsed->port);
  if (!served) return error;
  const auto note = net::note_on_loopback(std::string(host), served->addresses.front());
  if (!note.empty()) error.detail += "; " + note;
  return error;
}

/// Whether the server, or this session there, is gone, or seems to be, and may come back.
bool is_gone(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::suspended ||
         code == ErrorCode::server_restarted || code == ErrorCode::session_expired;
}

/// Nobody came back after the join had failed with `lost`.
Error still_gone(Error error, const Error& lost) {
  error.detail += "; before that: " + std::string(name_of(lost.code)) + ": " + lost.detail;
  error.happened = lost.happened;
  if (!error.ranks.empty()) return error;
  error.ranks = lost.ranks;
  error.rank_ranges = lost.rank_ranges;
  error.cause = lost.cause;
  return error;
}

/// What `join()` comes to once a server has answered it; else why none did until the deadline, or
/// for as long as the options have one awaited.
template <class Join, class TimeLeft>
Result<StatelessProcessGroup> join_until_answered(Store& store, const StoreOptions& options,
                                                  Join join, TimeLeft time_left) {
  const bool waits = options.wait_for_server == default_timeout;
  const auto may_pass = [waits](ErrorCode code) {
    return is_gone(code) && (waits || code != ErrorCode::unavailable);
  };
  for (;;) {
    Result<StatelessProcessGroup> group = join();
    if (group || !is_gone(group.error().code)) return group;
    for (;;) {
      auto reopened = store.reopen(std::max(time_left(), Duration(1)));
      if (reopened) break;
      const bool is_over = time_left() <= Duration::zero() || !may_pass(reopened.error().code);
      if (is_over) return still_gone(std::move(reopened).error(), group.error());
    }
    if (time_left() <= Duration::zero()) return group;
  }
}

/// The server of this rank; none when it is to join somebody else's.
Result<std::shared_ptr<EmbeddedServer>> host_if_asked(const std::string& address, int rank,
                                                      const HostedGroupOptions& options) {
  SocketGuard socket(options.listening_socket);
  if (!serves(rank, options)) return std::shared_ptr<EmbeddedServer>();
  auto server = EmbeddedServer::start(address, options);
  if (server) {
    socket.release();
    return server;
  }
  const bool may_join = options.host_server == HostServer::automatic && !options.name.empty() &&
                        server.error().code == ErrorCode::address_in_use;
  if (may_join) return std::shared_ptr<EmbeddedServer>();
  return server;
}

}  // namespace

Result<StatelessProcessGroup> StatelessProcessGroup::create(
    std::string_view host, std::uint16_t port, int rank, int world_size, Duration data_expiration,
    Duration store_timeout, HostedGroupOptions options) {
  const auto begun = base::monotonic_now();
  const auto name =
      std::make_shared<const std::string>(options.name.empty() ? "default" : options.name);
  std::string address = address_of(host, port);
  const auto failed = [&](Error error) {
    if (error.where.empty()) error.where = base::shown_unless_secret(address);
    const bool is_in_doubt = error.happened == Happened::maybe;
    return client::described(std::move(error), {"create", name, 0, 0},
                             is_in_doubt ? Fate::in_doubt : Fate::unsent, nullptr, begun);
  };
  options.data_expiration = std::min<Duration>(data_expiration, seconds_max);
  options.timeout = std::min<Duration>(store_timeout, seconds_max);
  options.store.timeout = options.timeout;
  if (auto refused = refusal_of(host, port, rank, world_size, options)) {
    const SocketGuard socket(options.listening_socket);
    return failed(*std::move(refused));
  }
  auto server = host_if_asked(address, rank, options);
  if (!server) return failed(std::move(server).error());
  if (*server) address = (*server)->address();

  const auto time_left = [&] { return options.timeout - (base::monotonic_now() - begun); };
  const auto timeout = [&] { return std::max(time_left(), Duration(1)); };
  auto store = Store::connect(address, options.store, timeout());
  if (!store) return failed(not_served(std::move(store).error(), rank, options));
  // Sessions that end before there is a group are this call's affair.
  const std::shared_ptr<client::Link>& link = store->impl()->link();
  link->tell_session_ends(false);
  const auto join = [&] {
    return Impl::join(*store, *name, rank, world_size, options, timeout(), *server);
  };
  auto group = join_until_answered(*store, options.store, join, time_left);
  if (!group) {
    Error lost = not_served(std::move(group).error(), rank, options);
    if (*server) lost = not_reached(std::move(lost), host, address);
    Error error = failed(std::move(lost));
    if (*server) (*server)->give_up("rank 0 gave up: " + error.message());
    return error;
  }
  link->tell_session_ends(true);
  return group;
}

MUSTER_END_NAMESPACE
