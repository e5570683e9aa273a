#include "core/memory/slab.h"

#include <map>
#include <random>

#include <doctest/doctest.h>

using namespace muster::core;

namespace {

struct Item {
  Item(std::uint32_t its_slot, int its_number) : slot(its_slot), number(its_number) { ++alive; }
  ~Item() { --alive; }
  std::uint32_t slot;
  int number;
  static inline int alive = 0;
};

}  // namespace

TEST_CASE("objects keep their slot and their address while others come and go") {
  std::mt19937 random(3);
  {
    Slab<Item> slab;
    std::map<std::uint32_t, Item*> known;
    for (int step = 0; step < 50000; ++step) {
      const bool grows = (step / 5000) % 2 == 0;
      if (known.empty() || random() % 10 < (grows ? 7U : 3U)) {
        Item& item = slab.emplace(step);
        REQUIRE(known.emplace(item.slot, &item).second);
      } else {
        auto victim =
            known.lower_bound(static_cast<std::uint32_t>(random() % (known.rbegin()->first + 1)));
        slab.erase(victim->first);
        REQUIRE((victim->first >= slab.end() || slab.at(victim->first) == nullptr));
        known.erase(victim);
      }
      if (step % 500 != 0) continue;
      for (const auto& [slot, item] : known) {
        REQUIRE(slab.at(slot) == item);
        REQUIRE(item->slot == slot);
      }
    }
    CHECK(Item::alive == static_cast<int>(known.size()));
  }
  CHECK(Item::alive == 0);
}

TEST_CASE("free slots are used before new ones, and the end shrinks with the last objects") {
  Slab<Item> slab;
  CHECK(slab.end() == 0);
  for (int number = 0; number < 1000; ++number) slab.emplace(number);
  CHECK(slab.end() == 1000);
  for (std::uint32_t slot = 0; slot < 500; ++slot) slab.erase(slot);
  for (int number = 0; number < 500; ++number) CHECK(slab.emplace(number).slot < 500);
  for (std::uint32_t slot = 100; slot < 1000; ++slot) slab.erase(slot);
  CHECK(slab.end() == 100);
  CHECK(slab.emplace(1).slot >= 100);
}

TEST_CASE("a walk from slot to slot meets every object and jumps over empty chunks") {
  Slab<Item> slab;
  for (int number = 0; number < 6400; ++number) slab.emplace(number);
  for (std::uint32_t slot = 1; slot < 6399; ++slot) slab.erase(slot);
  int steps = 0;
  int met = 0;
  for (std::uint32_t slot = 0; slot < slab.end(); slot = slab.after(slot)) {
    ++steps;
    if (slab.at(slot) != nullptr) ++met;
  }
  CHECK(met == 2);
  CHECK(steps < 300);
}
