#include "core/memory/freed_memory.h"

#include <cstdlib>
#include <cstring>

#include <doctest/doctest.h>

#include "core/memory/charged_memory.h"
#include "core/memory/payload.h"
#include "core/memory/server_memory.h"

using namespace muster::core;

namespace {

constexpr std::size_t long_bytes = FreedMemory::long_bytes_min;

char* used(std::size_t bytes) {
  char* const memory = static_cast<char*>(std::malloc(bytes));
  REQUIRE(memory != nullptr);
  std::memset(memory, 'x', bytes);
  return memory;
}

}  // namespace

TEST_CASE("freed memory is given back in pieces as long as was asked for") {
  FreedMemory freed;
  CHECK(freed.give_back(100) == 0);
  for (int count = 0; count < 3; ++count) freed.add(used(4 * long_bytes), 4 * long_bytes);
  CHECK(freed.give_back(long_bytes) == long_bytes);
  CHECK(freed.give_back(3 * long_bytes) == 3 * long_bytes);
  CHECK(freed.give_back(5 * long_bytes) == 5 * long_bytes);
  CHECK_FALSE(freed.empty());
  CHECK(freed.give_back(5 * long_bytes) == 3 * long_bytes);
  CHECK(freed.empty());
}

TEST_CASE("a piece of freed memory may be so long that hardly anything would be left") {
  FreedMemory freed;
  freed.add(used(long_bytes), long_bytes);
  CHECK(freed.give_back(long_bytes - 1) == long_bytes - 1);
  CHECK_FALSE(freed.empty());
  CHECK(freed.give_back(long_bytes) > 0);
  CHECK(freed.empty());
}

TEST_CASE("freed memory that nobody asked for goes with its place") {
  FreedMemory freed;
  freed.add(used(long_bytes), long_bytes);
}

TEST_CASE("long memory of payloads and requests is freed in pieces, and charged no more at once") {
  ServerMemory memory(100 * long_bytes);
  Quota account(UINT64_MAX, &memory.all);
  SUBCASE("a payload") { CHECK(make_payload(account, std::string(long_bytes, 'v')) != nullptr); }
  SUBCASE("of a request") {
    ChargedMemory brought(account);
    REQUIRE(brought.grow(long_bytes, 2 * long_bytes, Charging::normal));
    std::memset(brought.begin(), 'x', long_bytes);
  }
  SUBCASE("of a request that was kept") {
    ChargedMemory brought(account);
    REQUIRE(brought.grow(long_bytes, 0, Charging::normal));
    CHECK(brought.take_over(account, brought.all(), Charging::normal) != nullptr);
  }
  CHECK(memory.all.used_bytes() == 0);
  CHECK_FALSE(memory.freed.empty());
  CHECK(memory.freed.give_back(2 * long_bytes) == long_bytes);
}

TEST_CASE("short memory is freed at once") {
  ServerMemory memory(100 * long_bytes);
  CHECK(make_payload(memory.all, std::string(long_bytes - 1, 'v')) != nullptr);
  CHECK(memory.freed.empty());
}

TEST_CASE("a system that has no memory gets all that was freed") {
  ServerMemory memory(100 * long_bytes);
  CHECK(make_payload(memory.all, std::string(long_bytes, 'v')) != nullptr);
  memory.all.set_short(true);
  CHECK(memory.freed.empty());
}
