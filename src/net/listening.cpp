#include "net/listening.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "net/address/address.h"
#include "net/address/resolver.h"
#include "net/connection.h"
#include "net/failure.h"

// Three steps, each for all addresses before the next: understand them, check that each may be
// served, bind them. Who may not listen somewhere has then listened nowhere.

namespace muster::net {
namespace {

constexpr int port_tries = 16;  // to find one port that is free on all addresses of a host name

/// What one address of the options stands for.
struct ListenTarget {
  std::string text;
  std::vector<SocketAddress> addresses;
  bool dual_stack = false;
  Identities identities = Identities::asked;
};

SocketAddress any_address(int family, std::uint16_t port) {
  SocketAddress address;
  if (family == AF_INET6) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    address = {reinterpret_cast<const sockaddr*>(&any), sizeof(any)};
  } else {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    address = {reinterpret_cast<const sockaddr*>(&any), sizeof(any)};
  }
  address.set_port(port);
  return address;
}

Error failure_at(const SocketAddress& address, int number, const char* during) {
  ErrorCode code = ErrorCode::unavailable;
  if (number == EADDRINUSE) code = ErrorCode::address_in_use;
  if (number == EACCES || number == EPERM) code = ErrorCode::permission_denied;
  std::string detail = std::string(during) + ": " + text_of_errno(number);
  if (code == ErrorCode::address_in_use) {
    detail +=
        "; if nothing listens there, a connection that was closed keeps the port for a "
        "minute (TIME-WAIT)";
  }
  if (code == ErrorCode::permission_denied) detail += "; choose a port that this user may open";
  Error error = failure(code, std::move(detail));
  error.where = to_string(address);
  return error;
}

constexpr std::string_view plain = "plain:";

Result<ListenTarget> understand(const std::string& text) {
  ListenTarget target{text, {}, false};
  if (text.starts_with(plain)) target.identities = Identities::none;
  Result<Address> address =
      parse_address(target.identities == Identities::none ? text.substr(plain.size()) : text);
  if (!address) return std::move(address).error();
  if (address->is_unix()) {
    target.addresses = {SocketAddress::unix_path(address->unix_path)};
  } else if (address->host.empty()) {
    target.dual_stack = true;
    target.addresses = {any_address(AF_INET6, address->port)};
  } else {
    Resolved resolved = resolve(address->host, address->port);
    if (resolved.addresses.empty()) return failure(ErrorCode::unavailable, resolved.detail);
    target.addresses = std::move(resolved.addresses);
  }
  return target;
}

constexpr const char* how_to_authenticate =
    ". Make a key by `musterctl keygen > key`, start by `musterd --credentials key`, and give it "
    "to clients by MUSTER_CREDENTIAL_FILE=key; or say by allow_unauthenticated, of musterd "
    "--allow-unauthenticated, that this is meant";

Result<void> check_allowed(const SocketAddress& address, Identities identities,
                           const ListenOptions& options) {
  std::string why;
  if (identities == Identities::none) {
    if (address.is_local_only() && !address.is_unix()) return {};
    why = "\"plain:\" asks nobody who he is, and is for loopback addresses alone";
  } else {
    if (options.allow_unauthenticated || options.has_credentials || address.is_local_only()) {
      return {};
    }
    why = "others than this machine could connect and nobody is authenticated" +
          (options.how_to_allow.empty() ? std::string(how_to_authenticate)
                                        : ". " + options.how_to_allow);
  }
  Error error = failure(ErrorCode::permission_denied, why);
  error.where = to_string(address);
  return error;
}

Result<Listening> bind_one(const SocketAddress& address, const ListenOptions& options,
                           int v6_only) {
  if (address.is_unix()) return listen_unix(address, options.backlog);
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!fd) return failure_at(address, errno, "making a socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.family() == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
  }
  if (::bind(fd.get(), address.data(), address.size()) != 0) {
    return failure_at(address, errno, "binding");
  }
  Connection::set_options(fd.get(), options.user_timeout);
  if (::listen(fd.get(), options.backlog) != 0) return failure_at(address, errno, "listening");
  return Listening(std::move(fd), SocketFile(), Listening::Options::inherited);
}

/// One socket for IPv4 and IPv6; for IPv4 alone where the machine has no IPv6.
Result<Listening> bind_dual_stack(const SocketAddress& address, const ListenOptions& options) {
  Result<Listening> both = bind_one(address, options, 0);
  if (both || both.error().code != ErrorCode::unavailable) return both;
  return bind_one(any_address(AF_INET, address.port()), options, 0);
}

/// All addresses of one host name, on one port. Those that this machine does not have are left
/// out if there are others.
Result<std::vector<Listening>> bind_host(const ListenTarget& target, const ListenOptions& options) {
  std::vector<Listening> bound;
  std::optional<Error> missing;
  for (SocketAddress address : target.addresses) {
    if (address.port() == 0 && !bound.empty()) address.set_port(bound[0].address().port());
    Result<Listening> one = bind_one(address, options, 1);
    if (one) {
      bound.push_back(std::move(*one));
    } else if (one.error().code == ErrorCode::unavailable) {
      missing = std::move(one).error();
    } else {
      return std::move(one).error();
    }
  }
  if (bound.empty()) return *missing;
  return bound;
}

Result<std::vector<Listening>> bind_target(const ListenTarget& target,
                                           const ListenOptions& options) {
  if (target.dual_stack) {
    Result<Listening> both = bind_dual_stack(target.addresses[0], options);
    if (!both) return std::move(both).error();
    std::vector<Listening> bound;
    bound.push_back(std::move(*both));
    return bound;
  }
  const bool any_port = !target.addresses[0].is_unix() && target.addresses[0].port() == 0;
  for (int tries = 1;; ++tries) {
    Result<std::vector<Listening>> bound = bind_host(target, options);
    const bool again = !bound && bound.error().code == ErrorCode::address_in_use && any_port;
    if (!again || tries == port_tries) return bound;
  }
}

int int_option(int fd, int name) {
  int value = 0;
  socklen_t size = sizeof(value);
  return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

}  // namespace

Listening::Listening(UniqueFd fd, SocketFile file, Options options)
    : file_(std::move(file)),
      fd_(std::move(fd)),
      address_(SocketAddress::local_of(fd_.get())),
      options_(options) {}

Result<std::vector<Listening>> listen_at(const std::vector<std::string>& addresses,
                                         const ListenOptions& options) {
  std::vector<ListenTarget> targets;
  for (const std::string& text : addresses) {
    Result<ListenTarget> target = understand(text);
    if (!target) return std::move(target).error();
    targets.push_back(std::move(*target));
  }
  for (const ListenTarget& target : targets) {
    for (const SocketAddress& address : target.addresses) {
      Result<void> allowed = check_allowed(address, target.identities, options);
      if (!allowed) return std::move(allowed).error();
    }
  }
  std::vector<Listening> all;
  for (const ListenTarget& target : targets) {
    Result<std::vector<Listening>> bound = bind_target(target, options);
    if (!bound) return std::move(bound).error();
    for (Listening& listening : *bound) {
      listening.set_identities(target.identities);
      if (listening.address().family() != AF_UNSPEC) continue;
      return failure_at(target.addresses.front(), ENOBUFS, "asking for the port of");
    }
    std::move(bound->begin(), bound->end(), std::back_inserter(all));
  }
  return all;
}

Result<Listening> listen_on(int fd, const ListenOptions& options) {
  const auto invalid = [fd](const std::string& why) {
    return failure(ErrorCode::invalid_argument,
                   "the listening socket (descriptor " + std::to_string(fd) + ") " + why);
  };
  if (::fcntl(fd, F_GETFD) < 0) return invalid("is not open");
  const SocketAddress address = SocketAddress::local_of(fd);
  const bool is_stream = int_option(fd, SO_TYPE) == SOCK_STREAM;
  const bool is_known =
      address.family() == AF_INET || address.family() == AF_INET6 || address.family() == AF_UNIX;
  if (!is_stream || !is_known) return invalid("is no stream socket");
  if (int_option(fd, SO_ACCEPTCONN) != 1) return invalid("does not listen");
  Result<void> allowed = check_allowed(address, Identities::asked, options);
  if (!allowed) return std::move(allowed).error();
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return failure_at(address, errno, "taking over the listening socket");
  ::fcntl(copy.get(), F_SETFL, ::fcntl(copy.get(), F_GETFL) | O_NONBLOCK);
  ::listen(copy.get(), options.backlog);
  // Some may have come before it had any option.
  return Listening(std::move(copy), SocketFile(), Listening::Options::missing);
}

int backlog_max_of_system() {
  std::ifstream file("/proc/sys/net/core/somaxconn");
  int limit = 0;
  return file >> limit ? limit : 0;
}

}  // namespace muster::net
