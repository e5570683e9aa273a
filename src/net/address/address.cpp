#include "net/address/address.h"

#include <sys/un.h>

#include <algorithm>
#include <charconv>

#include "base/secret/unshown.h"
#include "base/text.h"
#include "net/failure.h"

namespace muster::net {
namespace {

constexpr std::string_view unix_prefix = "unix:";
constexpr std::size_t host_bytes_max = 253;
constexpr std::size_t path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;

Error invalid(std::string_view text, const std::string& why) {
  return failure(ErrorCode::invalid_argument,
                 "address " + base::quoted_text(base::shown_unless_secret(text)) + ": " + why +
                     R"( (write "host:port", "[ipv6]:port", "unix:/path" or "unix:@name"))");
}

/// "unix:29400" is a port of a host with that name.
bool is_unix(std::string_view text) {
  if (text.substr(0, unix_prefix.size()) != unix_prefix) return false;
  const std::string_view rest = text.substr(unix_prefix.size());
  return rest.empty() || !std::all_of(rest.begin(), rest.end(),
                                      [](char letter) { return letter >= '0' && letter <= '9'; });
}

Result<Address> parse_unix(std::string_view text) {
  Address address;
  address.unix_path = text.substr(unix_prefix.size());
  const bool is_abstract = address.unix_path.size() > 1 && address.unix_path[0] == '@';
  if (!is_abstract && (address.unix_path.empty() || address.unix_path[0] != '/')) {
    return invalid(text, "the path of a Unix socket must be absolute");
  }
  if (address.unix_path.size() > path_bytes_max) {
    return invalid(text, "the path has more than " + std::to_string(path_bytes_max) + " bytes");
  }
  if (address.unix_path.find('\0') != std::string::npos) {
    return invalid(text, "the path has a zero byte");
  }
  return address;
}

/// Of a host with a colon that is in no brackets.
std::string why_colons(std::string_view text, std::string_view host) {
  const std::size_t scheme = text.find("://");
  if (scheme != std::string_view::npos) {
    return "an address has no scheme; leave out " + base::quoted_text(text.substr(0, scheme + 3));
  }
  constexpr std::string_view of_ipv6 = "0123456789abcdefABCDEF:.";
  const bool is_ipv6 = host.substr(0, host.find('%')).find_first_not_of(of_ipv6) == host.npos;
  return is_ipv6 ? "an IPv6 address must be written in brackets"
                 : "only one colon may be there, before the port";
}

bool is_host(std::string_view host) {
  return host.size() <= host_bytes_max && std::all_of(host.begin(), host.end(), [](char letter) {
           return letter > ' ' && letter != '\x7f' && letter != '/' && letter != '[' &&
                  letter != ']';
         });
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  text = base::without_line_end(text);
  if (is_unix(text)) return parse_unix(text);
  if (auto refused = base::refuse_secret("address (not shown)", text)) return *std::move(refused);
  std::string_view host;
  std::string_view port;
  if (!text.empty() && text[0] == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return invalid(text, "the bracket is not closed");
    host = text.substr(1, end - 1);
    if (host.find(':') == std::string_view::npos) {
      return invalid(text, "only an IPv6 address is written in brackets");
    }
    if (text.substr(end + 1, 1) != ":") return invalid(text, "no port after the bracket");
    port = text.substr(end + 2);
  } else {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return invalid(text, "no port");
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (host.find(':') != std::string_view::npos) {
      return invalid(text, why_colons(text, host));
    }
  }
  if (!is_host(host)) return invalid(text, "the host is no host name");
  Address address;
  address.host = host;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size()) {
    return invalid(text, "the port is no number from 0 to 65535");
  }
  return address;
}

std::string to_string(const Address& address) {
  if (address.is_unix()) return std::string(unix_prefix) + address.unix_path;
  const bool bracketed = address.host.find(':') != std::string::npos;
  return (bracketed ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace muster::net
