#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "engine_driver.h"

// What a unit has in a namespace outlives its sessions as long as anything is charged to it. Then
// it goes while others come, or those who are there would share with units that want nothing.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

std::string address(int number) { return "10.0.0." + std::to_string(number); }

/// How many keys of the value one more session of the unit can set; it leaves none behind.
int room_for(EngineDriver& driver, const std::string& unit, const std::string& value) {
  const core::ConnectionId connection = driver.connect("", wire::Role::client, unit);
  int count = 0;
  for (;; ++count) {
    const std::string key = "of " + unit + std::to_string(count);
    driver.ask(connection, wire::Set{key, value, {}, false, true});
    driver.effects.erase(driver.effects.begin(), driver.effects.end() - 1);  // acknowledged
    if (std::get<core::SendReply>(driver.effects.front()).code != 0) break;
  }
  driver.apply(core::Goodbye{connection});
  driver.effects.clear();
  return count;
}

constexpr int visitors_count = 40;

/// Visitors leave a key each behind; `remove_keys` does away with them. Afterwards they take no
/// part of the memory from somebody else.
template <class RemoveKeys>
void check_visitors_are_forgotten(RemoveKeys remove_keys) {
  core::Options options;
  options.memory_bytes_max = 1U << 20;
  EngineDriver driver(options);
  const std::string value(1000, 'v');
  driver.connect("", wire::Role::client, address(1));  // stays
  const int alone = room_for(driver, address(1), value);
  CHECK(alone > 800);
  for (int number = 2; number < visitors_count + 2; ++number) {
    const core::ConnectionId visitor = driver.connect("", wire::Role::client, address(number));
    driver.ask(visitor, wire::Set{address(number), "v", Duration(5s), false, false});
    driver.apply(core::Goodbye{visitor});
    driver.effects.clear();
  }
  const int beside_others = room_for(driver, address(1), value);
  CHECK(beside_others < alone * 15 / 16);  // the last eighth is for the visitors
  remove_keys(driver);
  driver.effects.clear();
  CHECK(driver.engine.counts().keys == 0);
  CHECK(driver.engine.counts().sessions == 1);
  CHECK(room_for(driver, address(1), value) == alone);
}

}  // namespace

TEST_CASE("units whose keys have expired take no part of the memory any more after a while") {
  check_visitors_are_forgotten([](EngineDriver& driver) { driver.pass(6s); });
}

TEST_CASE("units whose keys were removed take no part any more at once when others come") {
  check_visitors_are_forgotten([](EngineDriver& driver) {
    for (int number = 2; number < visitors_count + 2; ++number) {
      const core::ConnectionId other = driver.connect("", wire::Role::client, address(1));
      const std::string key = address(number);
      driver.ask(other, wire::Remove{{key}});
      driver.apply(core::Goodbye{other});
    }
    for (int count = 0; count < visitors_count; ++count)
      driver.apply(core::Goodbye{driver.connect("", wire::Role::client, address(1))});
  });
}

TEST_CASE("a sweep finds every account that is over, a few at a time, and no other") {
  core::Quota server(1000);
  core::Units units(server);
  core::Quota name_space(1000, &server);
  core::Accounts accounts(name_space);
  std::vector<core::Account*> made;
  for (int number = 0; number < 9; ++number) {
    made.push_back(&accounts.find_or_make(units.find_or_make(address(number))));
  }
  made[3]->quota.charge_always(1);
  made[5]->sessions_count = 1;
  made[7]->groups_count = 1;
  made[8]->epochs_count = 1;
  accounts.sweep(units, 2);
  CHECK(accounts.size() >= 7);
  for (int count = 0; count < 4; ++count) accounts.sweep(units, 2);
  CHECK(accounts.size() == 4);
  CHECK(units.size() == 4);
  CHECK(&accounts[made[3]->index] == made[3]);

  // Their places are used again, and an account that stays keeps its own.
  const std::uint16_t index = made[7]->index;
  for (int number = 20; number < 25; ++number) {
    const core::Account& again = accounts.find_or_make(units.find_or_make(address(number)));
    CHECK(again.index < 9);
  }
  CHECK(made[7]->index == index);
  made[3]->quota.release(1);
  made[5]->sessions_count = made[7]->groups_count = made[8]->epochs_count = 0;
  accounts.sweep(units, core::Accounts::count_max);
  CHECK(accounts.size() == 0);
  CHECK(units.size() == 0);
}

TEST_CASE("a unit stands as long as one of its accounts, or a namespace that it has made") {
  core::Quota server(1000);
  core::Units units(server);
  core::Quota one(1000, &server);
  core::Quota other(1000, &server);
  core::Accounts accounts_of_one(one);
  core::Accounts accounts_of_other(other);
  core::Unit& unit = units.find_or_make(address(1));
  core::Account& in_one = accounts_of_one.find_or_make(unit);
  core::Account& in_other = accounts_of_other.find_or_make(unit);
  in_other.sessions_count = 1;
  accounts_of_one.drop_if_over(units, in_one);
  accounts_of_other.drop_if_over(units, in_other);
  CHECK(units.size() == 1);
  unit.name_spaces_count = 1;
  in_other.sessions_count = 0;
  accounts_of_other.drop_if_over(units, in_other);
  CHECK(accounts_of_other.size() == 0);
  CHECK(units.size() == 1);
  unit.name_spaces_count = 0;
  units.drop_if_over(unit);
  CHECK(units.size() == 0);
}

TEST_CASE("a bucket gives so many requests at once, and as many in each second") {
  core::RequestBucket bucket;
  core::Instant now(1000s);
  const auto taken = [&](std::uint32_t per_second) {
    int count = 0;
    while (count < 1000 && bucket.take(now, per_second)) ++count;
    return count;
  };
  CHECK(taken(3) == 3);
  now += 333'333us;
  CHECK(taken(3) == 0);
  now += 1us;
  CHECK(taken(3) == 1);
  now += 24h;
  CHECK(taken(3) == 3);
  // Another rate counts from then on, what was taken with it.
  CHECK(taken(5) == 2);
  now += 1s;
  CHECK(taken(1) == 1);
  now += 999'999us;
  CHECK(taken(1) == 0);
  now += 1us;
  CHECK(taken(1) == 1);
  CHECK(taken(UINT32_MAX) == 1000);
}
