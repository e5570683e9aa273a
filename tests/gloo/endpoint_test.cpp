#include "gloo/endpoint.h"

#include <sys/socket.h>

#include <string>

#include <doctest/doctest.h>

#include "support/machine.h"

namespace muster::gloo_internal {
namespace {

gloo::Options options_with(std::string interface, std::string address) {
  gloo::Options options;
  options.interface = std::move(interface);
  options.address = std::move(address);
  return options;
}

TEST_CASE("without options it is the address from which the store is reached") {
  for (const char* const store : {"127.0.0.1:1234", "localhost:1234", "unix:/tmp/socket"}) {
    CAPTURE(store);
    const auto endpoint = find_endpoint({}, store);
    REQUIRE(endpoint);
    CHECK(endpoint->is_loopback);
  }
  if (!test::has_ipv6()) return;
  const auto endpoint = find_endpoint({}, "[::1]:1234");
  REQUIRE(endpoint);
  CHECK(endpoint->text == "::1");
  CHECK(endpoint->family == AF_INET6);
  CHECK(endpoint->is_loopback);
}

TEST_CASE("an interface or an address that is named is taken") {
  auto endpoint = find_endpoint(options_with("lo", ""), "198.51.100.1:1234");
  REQUIRE(endpoint);
  CHECK(endpoint->text == "127.0.0.1");
  CHECK(endpoint->family == AF_INET);
  endpoint = find_endpoint(options_with("", "127.0.0.2"), "198.51.100.1:1234");
  REQUIRE(endpoint);
  CHECK(endpoint->text == "127.0.0.2");
  endpoint = find_endpoint(options_with("", "198.51.100.7"), "127.0.0.1:1234");
  REQUIRE(endpoint);
  CHECK_FALSE(endpoint->is_loopback);
}

TEST_CASE("what is no address for others is refused, and said what there is") {
  for (const auto& options :
       {options_with("eth77", ""), options_with("", "0.0.0.0"), options_with("", "::"),
        options_with("", "no.such.host.invalid"), options_with("lo", "127.0.0.1")}) {
    const auto endpoint = find_endpoint(options, "127.0.0.1:1234");
    REQUIRE_FALSE(endpoint);
    CHECK(endpoint.error().code == ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace muster::gloo_internal
