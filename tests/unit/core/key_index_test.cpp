#include "core/keys/key_index.h"

#include <random>
#include <set>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "core/keys/table_state.h"
#include "core/memory/hash.h"

using namespace muster::core;

namespace {

std::uint32_t hash_of(const std::string& key) {
  return static_cast<std::uint32_t>(keyed_hash({1, 2}, key));
}

}  // namespace

TEST_CASE("the index finds what is in it while it grows and shrinks") {
  std::mt19937 random(5);
  Slab<Entry> entries;
  for (std::uint32_t number = 0; number < 20000; ++number) {
    const std::string key = "key/" + std::to_string(number);
    entries.emplace(Block::make(key, {}, Block::Extras::none), hash_of(key), std::uint16_t{0});
  }
  KeyIndex index(entries);
  std::set<std::uint32_t> inside;
  for (int step = 0; step < 200000; ++step) {
    const bool grows = (step / 50000) % 2 == 0;
    Entry& entry = entries[static_cast<std::uint32_t>(random() % 20000)];
    const bool is_inside = inside.contains(entry.slot);
    REQUIRE(index.find(entry.key(), entry.hash) == (is_inside ? &entry : nullptr));
    index.prefetch_bucket(entry.hash);
    index.prefetch_entry(entry.hash);
    index.prefetch_key(entry.hash);
    if (is_inside && random() % 10 < (grows ? 1U : 9U)) {
      index.remove(entry);
      inside.erase(entry.slot);
    } else if (!is_inside && random() % 10 < (grows ? 9U : 1U)) {
      index.reserve_one();
      index.insert(entry);
      inside.insert(entry.slot);
    }
    REQUIRE(index.size() == inside.size());
  }
  for (std::uint32_t slot = 0; slot < entries.end(); ++slot) {
    Entry& entry = entries[slot];
    REQUIRE(index.find(entry.key(), entry.hash) == (inside.contains(slot) ? &entry : nullptr));
    if (inside.contains(slot)) index.remove(entry);
    entry.block.free();
  }
  CHECK(index.size() == 0);
}

TEST_CASE("keys of one hash are told apart") {
  Slab<Entry> entries;
  Entry& a = entries.emplace(Block::make("a", {}, Block::Extras::none), 77U, std::uint16_t{0});
  Entry& b = entries.emplace(Block::make("b", {}, Block::Extras::none), 77U, std::uint16_t{0});
  KeyIndex index(entries);
  for (Entry* entry : {&a, &b}) {
    index.reserve_one();
    index.insert(*entry);
  }
  CHECK(index.find("a", 77) == &a);
  CHECK(index.find("b", 77) == &b);
  CHECK(index.find("c", 77) == nullptr);
  index.remove(a);
  CHECK(index.find("a", 77) == nullptr);
  CHECK(index.find("b", 77) == &b);
  a.block.free();
  b.block.free();
}

TEST_CASE("the hash is SipHash-1-3 and depends on its key") {
  // Vectors of the reference implementation: key 00..0f, input 00, 01, 02, ...
  const std::array<std::uint64_t, 2> key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  CHECK(keyed_hash(key, "") == 0xabac0158050fc4dc);
  CHECK(keyed_hash(key, std::string_view("\0", 1)) == 0xc9f49bf37d57ca93);
  // All lengths, against the same read byte by byte.
  std::string bytes;
  for (std::size_t size = 0; size < 40; ++size) {
    CAPTURE(size);
    SipHash13 expected(key);
    std::uint64_t word = 0;
    for (std::size_t at = 0; at < size; ++at) {
      word |= std::uint64_t{static_cast<unsigned char>(bytes[at])} << (8 * (at % 8));
      if (at % 8 == 7) expected.add(std::exchange(word, 0));
    }
    expected.add(word | std::uint64_t{size} << 56);
    CHECK(keyed_hash(key, std::string(bytes)) == expected.finish());  // where nothing follows it
    bytes += static_cast<char>(0xf0 + size);
  }
  CHECK(keyed_hash({1, 2}, "key") != keyed_hash({1, 3}, "key"));
  CHECK(keyed_hash({1, 2}, "key") != keyed_hash({2, 2}, "key"));
}
