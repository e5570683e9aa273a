#include "gloo/endpoint.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <set>
#include <string_view>

#include "client/failure.h"

namespace muster::gloo_internal {
namespace {

constexpr std::string_view unix_prefix = "unix:";

bool is_ip(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

socklen_t size_of_address(const sockaddr* address) {
  return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

template <class Address>
Address as(const sockaddr* address) {
  Address copy;
  std::memcpy(&copy, address, sizeof copy);
  return copy;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return ntohl(as<sockaddr_in>(address).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  const auto copy = as<sockaddr_in6>(address);
  return IN6_IS_ADDR_LOOPBACK(&copy.sin6_addr);
}

bool is_wildcard(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return as<sockaddr_in>(address).sin_addr.s_addr == htonl(INADDR_ANY);
  }
  const auto copy = as<sockaddr_in6>(address);
  return IN6_IS_ADDR_UNSPECIFIED(&copy.sin6_addr);
}

Endpoint endpoint_of(const sockaddr* address) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(address, size_of_address(address), text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return {text, address->sa_family, is_loopback(address)};
}

using Found = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Found look_up(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

Result<Endpoint> of_interface(const std::string& name) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) list = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::set<std::string> others;
  const sockaddr* chosen = nullptr;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (!is_ip(each->ifa_addr)) continue;
    others.insert(each->ifa_name);
    if (name != each->ifa_name) continue;
    if (chosen == nullptr || chosen->sa_family != AF_INET) chosen = each->ifa_addr;
  }
  if (chosen != nullptr) return endpoint_of(chosen);
  std::string detail = "interface " + name + ": none that has an address; there are";
  for (const std::string& other : others) detail += ' ' + other;
  return client::invalid_argument(std::move(detail));
}

Result<Endpoint> of_address(const std::string& given) {
  const Found found = look_up(given, "0");
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    if (!is_ip(each->ai_addr)) continue;
    if (is_wildcard(each->ai_addr)) {
      return client::invalid_argument("address " + given + ": name one that the others can reach");
    }
    return endpoint_of(each->ai_addr);
  }
  return client::invalid_argument("address " + given + ": is none");
}

/// No byte is sent: the kernel only says which of its addresses it would use.
Result<Endpoint> towards(const std::string& store_address) {
  const std::size_t colon = store_address.rfind(':');
  std::string host = store_address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
  const Found found = look_up(host, store_address.substr(colon + 1));
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    if (!is_ip(each->ai_addr)) continue;
    const int probe = ::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0) continue;
    sockaddr_storage own{};
    auto* const address = reinterpret_cast<sockaddr*>(&own);
    socklen_t size = sizeof own;
    const bool is_known = ::connect(probe, each->ai_addr, each->ai_addrlen) == 0 &&
                          ::getsockname(probe, address, &size) == 0;
    ::close(probe);
    if (is_known && !is_wildcard(address)) return endpoint_of(address);
  }
  return client::invalid_argument("no address of this host reaches the store at " + store_address +
                                  "; set gloo::Options::address or gloo::Options::interface");
}

}  // namespace

Result<Endpoint> find_endpoint(const gloo::Options& options, const std::string& store_address) {
  if (!options.interface.empty() && !options.address.empty()) {
    return client::invalid_argument("interface and address: name one of them");
  }
  if (!options.interface.empty()) return of_interface(options.interface);
  if (!options.address.empty()) return of_address(options.address);
  if (store_address.compare(0, unix_prefix.size(), unix_prefix) == 0)
    return of_address("127.0.0.1");
  return towards(store_address);
}

}  // namespace muster::gloo_internal
