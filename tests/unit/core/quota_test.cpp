#include <doctest/doctest.h>

#include "core/memory/payload.h"

using namespace muster::core;

TEST_CASE("a quota refuses what would pass its limit and charges nothing then") {
  Quota quota(100);
  CHECK(quota.charge(60));
  CHECK_FALSE(quota.charge(41));
  CHECK(quota.used_bytes() == 60);
  CHECK(quota.charge(40));
  quota.release(100);
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("a huge charge does not wrap around") {
  Quota quota(100);
  CHECK(quota.charge(50));
  CHECK_FALSE(quota.charge(~std::uint64_t{0}));
  CHECK_FALSE(quota.charge_reserve(~std::uint64_t{0}));
}

TEST_CASE("a charge counts against the parent too, whose limit refuses as well") {
  Quota server(100);
  Quota one(80, &server);
  Quota two(80, &server);
  CHECK(one.charge(70));
  CHECK_FALSE(two.charge(40));
  CHECK(server.used_bytes() == 70);
  CHECK(two.used_bytes() == 0);
  CHECK(&two.refusing(40) == &server);
  CHECK(&two.refusing(90) == &two);
}

TEST_CASE("the reserve is an eighth of the limit") {
  Quota quota(800);
  CHECK(quota.charge(800));
  CHECK_FALSE(quota.charge(1));
  CHECK(quota.charge_reserve(100));
  CHECK_FALSE(quota.charge_reserve(1));
  quota.charge_always(1000);
  CHECK(quota.used_bytes() == 1900);
  CHECK_FALSE(quota.charge(1));
}

TEST_CASE("a payload is charged once, until the last who shares it lets go") {
  Quota quota(1000);
  Payload payload = make_payload(quota, "0123456789");
  CHECK(payload->view() == "0123456789");
  const std::uint64_t used_bytes = quota.used_bytes();
  CHECK(used_bytes == 10 + payload_overhead_bytes);
  Payload shared = payload;
  CHECK(quota.used_bytes() == used_bytes);
  payload = nullptr;
  CHECK(quota.used_bytes() == used_bytes);
  shared = nullptr;
  CHECK(quota.used_bytes() == 0);
}

TEST_CASE("a payload that is refused is null, one that must be made passes the limit") {
  Quota quota(150);
  CHECK(make_payload(quota, std::string(100, 'x')) == nullptr);
  CHECK(make_payload(quota, std::string(100, 'x'), Charging::reserve) == nullptr);
  CHECK(make_payload_joined(quota, std::string(50, 'x'), std::string(50, 'y')) == nullptr);
  CHECK(quota.used_bytes() == 0);
  const Payload payload = make_payload(quota, std::string(100, 'x'), Charging::always);
  CHECK(quota.used_bytes() > quota.limit_bytes());
  CHECK(payload->view() == std::string(100, 'x'));
  const std::uint64_t used_bytes = quota.used_bytes();
  const Payload taken_over = make_payload_always(quota, std::string(100, 'y'));
  CHECK(taken_over->view() == std::string(100, 'y'));
  CHECK(quota.used_bytes() == 2 * used_bytes);
}

TEST_CASE("two parts are joined in their order") {
  Quota quota(1000);
  CHECK(make_payload_joined(quota, "ab", "cd")->view() == "abcd");
}
