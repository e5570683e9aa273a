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
  CHECK(&two.refusing(40).quota == &server);
  CHECK(&two.refusing(90).quota == &two);
}

TEST_CASE(
    "of two limits that are passed the one that is lower than the server's has to be raised") {
  Quota server(100);
  Quota unlimited(100, &server);
  Quota lower(90, &server);
  CHECK(lower.charge(50));
  CHECK(unlimited.charge(50));
  CHECK(&unlimited.refusing(60).quota == &server);
  CHECK(&lower.refusing(60).quota == &lower);
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

namespace {

/// Two units in one namespace of a server.
struct Sharing {
  Quota server{8000};
  Quota one_unit{UINT64_MAX};
  Quota other_unit{UINT64_MAX};
  Quota one{UINT64_MAX, &server, &one_unit};
  Quota other{UINT64_MAX, &server, &other_unit};
};

}  // namespace

TEST_CASE("whoever is alone may take everything") {
  Sharing quotas;
  quotas.server.add_sharer();
  CHECK(quotas.one.charge(8000));
  CHECK(quotas.one_unit.used_bytes() == 8000);
  quotas.one.release(8000);
  CHECK(quotas.one_unit.used_bytes() == 0);
}

TEST_CASE("of two units the one above its share leaves the last eighth to the other") {
  Sharing quotas;
  quotas.server.add_sharer();
  quotas.server.add_sharer();
  CHECK(quotas.one.charge(7000));
  CHECK_FALSE(quotas.one.charge(1));
  CHECK(&quotas.one.refusing(1).quota == &quotas.one_unit);
  CHECK(quotas.one.refusing(1).bytes_max == 4000);
  CHECK(quotas.other.charge(1000));
  CHECK(quotas.other.charge(250));  // a quarter of the reserve, as below
  CHECK_FALSE(quotas.other.charge(1));
  CHECK(&quotas.other.refusing(1).quota == &quotas.server);
}

TEST_CASE("the accounts of a unit share what it may have") {
  Sharing quotas;
  Quota second(UINT64_MAX, &quotas.server, &quotas.one_unit);
  quotas.server.add_sharer();
  quotas.one_unit.add_sharer();
  quotas.one_unit.add_sharer();
  CHECK(quotas.one.charge(7000));
  CHECK_FALSE(quotas.one.charge(1));
  CHECK(&quotas.one.refusing(1).quota == &quotas.one);
  CHECK(quotas.one.refusing(1).bytes_max == 4000);
  CHECK(second.charge(1000));
}

TEST_CASE("a unit takes of the reserve as much as it leaves free") {
  Sharing quotas;
  quotas.server.charge_always(8000);
  CHECK(quotas.one.charge_reserve(333));
  CHECK_FALSE(quotas.one.charge_reserve(2));
  CHECK(quotas.other.charge_reserve(200));
  CHECK_FALSE(quotas.other.charge_reserve(100));
  quotas.one.release(333);
  CHECK(quotas.other.charge_reserve(60));
  CHECK(quotas.one.charge_reserve(300));  // what was given back may be taken again
}

TEST_CASE("what a unit above its share takes of the last eighth is a part of the reserve") {
  Sharing quotas;
  quotas.server.add_sharer();
  quotas.server.add_sharer();
  CHECK(quotas.one.charge_reserve(7000));
  CHECK(quotas.one.charge_reserve(333));
  CHECK_FALSE(quotas.one.charge_reserve(2));
  CHECK(quotas.other.charge(1000));  // the 333 are no less for the other
  CHECK(quotas.other.charge_reserve(333));
  CHECK_FALSE(quotas.other.charge_reserve(2));
  quotas.one.release(7333);
  quotas.other.release(1333);
  CHECK(quotas.server.used_bytes() == 0);
  CHECK(quotas.one.charge_reserve(7333));  // all that was taken is paid back
}

TEST_CASE("what a unit above its share had to be charged is no less of the reserve for others") {
  Sharing quotas;
  quotas.server.add_sharer();
  quotas.server.add_sharer();
  quotas.one.charge_always(7900);
  CHECK_FALSE(quotas.one.charge_reserve(100));
  CHECK(quotas.other.charge(100));
  CHECK(quotas.other.charge_reserve(200));
}

TEST_CASE("what others had to be charged leaves the values of a unit below its share their room") {
  Sharing quotas;
  Quota strict(1000, &quotas.server);
  Quota in_strict(UINT64_MAX, &strict, &quotas.other_unit);
  quotas.server.add_sharer();
  quotas.server.add_sharer();
  strict.charge_always(1000);
  quotas.one.charge_always(7400);
  CHECK_FALSE(in_strict.charge(1));            // a lower limit is one
  CHECK(quotas.other.charge(100));             // half of the reserve
  CHECK(quotas.other.assured_bytes() == 250);  // and a quarter of it: the rest is for groups
  CHECK(quotas.other.charge(250));
  CHECK(quotas.other.assured_bytes() == 0);
  CHECK_FALSE(quotas.other.charge(1));
  CHECK_FALSE(quotas.one.charge(1));
}

TEST_CASE("a unit that arrives when all memory is taken may put values into the reserve") {
  Sharing quotas;
  Quota strict(500, &quotas.server);
  Quota in_strict(UINT64_MAX, &strict, &quotas.other_unit);
  quotas.server.add_sharer();
  CHECK(quotas.one.charge(8000));
  CHECK(quotas.one.charge_reserve(500));  // all that one unit gets of the reserve
  quotas.server.charge_always(250);       // replies that are not read
  CHECK_FALSE(quotas.one.charge(1));
  CHECK_FALSE(quotas.other.charge(1));  // the other one is not there yet
  quotas.server.add_sharer();
  CHECK(quotas.other.assured_bytes() == 250);
  CHECK(quotas.other.charge(200));
  CHECK_FALSE(quotas.other.charge(51));
  CHECK_FALSE(quotas.other.charge(~std::uint64_t{0}));
  CHECK_FALSE(quotas.one.charge(1));
  CHECK(quotas.other.charge(50));
  quotas.other.release(250);
  quotas.server.release(250);
  CHECK(quotas.other.charge(250));  // what was released may be taken again
  CHECK_FALSE(quotas.other.charge(1));
  quotas.other.release(250);
  quotas.server.set_short(true);
  CHECK_FALSE(quotas.other.charge(1));
  quotas.server.set_short(false);
  CHECK_FALSE(in_strict.charge(501));  // a lower limit is one
  CHECK(in_strict.charge(100));
  CHECK(quotas.server.used_bytes() == 8600);
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

TEST_CASE("the limit of a unit holds for all of its accounts together") {
  Quota server(10'000);
  Quota unit(UINT64_MAX);
  Quota one(UINT64_MAX, &server, &unit);
  Quota two(UINT64_MAX, &server, &unit);
  unit.set_limit(800);
  CHECK(one.charge(500));
  CHECK_FALSE(two.charge(301));
  CHECK_FALSE(two.charge(~std::uint64_t{0}));
  const QuotaRefusal refusal = two.refusing(301);
  CHECK(&refusal.quota == &unit);
  CHECK(refusal.is_of_identity);
  CHECK(refusal.bytes_max == 800);
  CHECK(two.charge(300));
  CHECK(server.used_bytes() == 800);
  // Groups go on for an eighth of it.
  CHECK(two.charge_reserve(100));
  CHECK_FALSE(one.charge_reserve(1));
  CHECK_FALSE(one.has_reserve(1));
  // What is there stays when the limit is lowered, and others are as before when there is none.
  unit.set_limit(100);
  CHECK_FALSE(one.charge(1));
  one.release(500);
  two.release(400);
  CHECK(one.charge(100));
  unit.set_limit(UINT64_MAX);
  CHECK(two.charge(5000));
  CHECK_FALSE(two.refusing(1).is_of_identity);
}

TEST_CASE("a limit that sinks with what is used refuses more, and always has its reserve") {
  Quota quota(1000);
  CHECK(quota.charge(800));
  quota.set_limit(400, Lowering::with_use);
  CHECK(quota.limit_bytes() == 800);
  CHECK_FALSE(quota.charge(1));
  CHECK(quota.charge_reserve(100));
  CHECK_FALSE(quota.charge_reserve(1));
  quota.release(100);
  quota.release(300);
  CHECK(quota.limit_bytes() == 500);
  CHECK_FALSE(quota.charge(1));
  quota.release(200);
  CHECK(quota.limit_bytes() == 400);
  CHECK(quota.charge(100));
  quota.set_limit(300, Lowering::with_use);
  quota.set_limit(2000, Lowering::with_use);
  CHECK(quota.charge(1600));
  quota.set_limit(100);
  CHECK(quota.limit_bytes() == 100);
}
