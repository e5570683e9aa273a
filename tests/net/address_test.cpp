#include "net/address/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include <doctest/doctest.h>

#include "net/address/unit.h"

namespace {

using muster::ErrorCode;
using muster::net::parse_address;

muster::net::SocketAddress ipv4(const char* text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  REQUIRE(::inet_pton(AF_INET, text, &address.sin_addr) == 1);
  return {reinterpret_cast<const sockaddr*>(&address), sizeof(address)};
}

muster::net::SocketAddress ipv6(const char* text) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  REQUIRE(::inet_pton(AF_INET6, text, &address.sin6_addr) == 1);
  return {reinterpret_cast<const sockaddr*>(&address), sizeof(address)};
}

TEST_CASE("an address is read and written the same") {
  for (const char* text :
       {"127.0.0.1:29500", "[::1]:29500", "a.host.example:1", ":65535", "localhost:0",
        "unix:/run/muster.sock", "unix:@muster", "[fe80::1%eth0]:80"}) {
    CAPTURE(text);
    const auto address = parse_address(text);
    REQUIRE(address);
    CHECK(to_string(*address) == text);
  }
}

TEST_CASE("the parts of an address are told apart") {
  const auto ipv6 = parse_address("[2001:db8::7]:29500");
  REQUIRE(ipv6);
  CHECK(ipv6->host == "2001:db8::7");
  CHECK(ipv6->port == 29500);
  const auto everywhere = parse_address(":29500");
  REQUIRE(everywhere);
  CHECK(everywhere->host.empty());
  const auto path = parse_address("unix:/tmp/a:b");
  REQUIRE(path);
  CHECK(path->is_unix());
  CHECK(path->unix_path == "/tmp/a:b");
}

TEST_CASE("an address that is none is an invalid argument") {
  const std::string long_path = "unix:/" + std::string(200, 'x');
  const std::string long_host = std::string(300, 'x') + ":1";
  for (const std::string& text : {std::string(""),
                                  std::string("host"),
                                  std::string("host:"),
                                  std::string("host:x"),
                                  std::string("host:65536"),
                                  std::string("host:-1"),
                                  std::string("host:+1"),
                                  std::string("host: 1"),
                                  std::string("::1:29500"),
                                  std::string("[::1]"),
                                  std::string("[::1:29500"),
                                  std::string("[::1]29500"),
                                  std::string("[host]:1"),
                                  std::string("two words:1"),
                                  std::string("unix:"),
                                  std::string("unix:relative/path"),
                                  std::string("unix:@"),
                                  std::string("tcp://host:1"),
                                  std::string("unix:/a\0b", 9),
                                  long_path,
                                  long_host}) {
    CAPTURE(text);
    const auto address = parse_address(text);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == ErrorCode::invalid_argument);
  }
  CHECK(parse_address("unix:").error().detail.find("path") != std::string::npos);
  CHECK(parse_address("tcp://host:1").error().detail.find("scheme") != std::string::npos);
  CHECK(parse_address("host:1:2").error().detail.find("IPv6 address must") == std::string::npos);
  CHECK(parse_address("fe80::1%eth0:1").error().detail.find("brackets") != std::string::npos);
  CHECK(parse_address(std::string(5000, 'x')).error().detail.size() < 300);
  CHECK(parse_address("unix:29400")->host == "unix");
}

TEST_CASE("a connection counts for its address, its network of IPv6, or its user") {
  const auto unit_of = [](const muster::net::SocketAddress& peer, int fd = -1) {
    return to_string(muster::net::unit_of(fd, peer));
  };
  CHECK(unit_of(ipv4("10.0.0.7")) == "10.0.0.7");
  CHECK(unit_of(ipv4("127.0.0.2")) == "127.0.0.2");
  CHECK(unit_of(ipv6("2001:db8:1:2:3:4:5:6")) == "2001:db8:1:2::/64");
  CHECK(unit_of(ipv6("2001:db8:1:2::9")) == unit_of(ipv6("2001:db8:1:2::1")));
  CHECK(unit_of(ipv6("2001:db8:1:3::9")) != unit_of(ipv6("2001:db8:1:2::9")));
  CHECK(unit_of(ipv6("::ffff:10.0.0.7")) == "10.0.0.7");
  CHECK(unit_of(muster::net::SocketAddress::unix_path("/socket")) == "uid unknown");
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  const std::string user = "uid " + std::to_string(::geteuid());
  const auto path = muster::net::SocketAddress::unix_path("/socket");
  CHECK(unit_of(path, ends[0]) == user);
  // Who operates the server at a Unix socket: its own user, and root.
  using muster::net::is_own_user;
  using Kind = muster::net::UnitId::Kind;
  CHECK(is_own_user(muster::net::unit_of(ends[0], path)));
  CHECK(is_own_user({Kind::user, 0}));
  CHECK_FALSE(is_own_user({Kind::user, ::geteuid() + 1}));
  CHECK_FALSE(is_own_user(muster::net::unit_of(-1, path)));
  CHECK_FALSE(is_own_user(muster::net::unit_of(-1, ipv4("0.0.0.0"))));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
