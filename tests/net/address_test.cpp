#include "net/address/address.h"

#include <doctest/doctest.h>

namespace {

using muster::ErrorCode;
using muster::net::parse_address;

TEST_CASE("an address is read and written the same") {
  for (const char* text : {"127.0.0.1:29500", "[::1]:29500", "a.host.example:1", ":65535",
                           "localhost:0", "unix:/run/muster.sock", "[fe80::1%eth0]:80"}) {
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
  CHECK(parse_address("unix:29400")->host == "unix");
}

}  // namespace
