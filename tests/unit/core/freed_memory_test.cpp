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

namespace {

constexpr std::size_t least_kept = FreedMemory::kept_bytes_min;

/// A server that keeps some of what is freed, and an account of it.
struct Keeping {
  explicit Keeping(std::uint64_t limit_bytes = 64 * least_kept) : memory(limit_bytes) {
    memory.freed.set_kept_max(8 * least_kept);
  }
  /// A value that goes again.
  void use(std::size_t bytes) {
    ChargedMemory brought(account);
    REQUIRE(brought.grow(bytes, 0, Charging::normal));
    std::memset(brought.begin(), 'o', bytes);
  }

  ServerMemory memory;
  Quota account{UINT64_MAX, &memory.all};
};

}  // namespace

TEST_CASE("long memory that was freed just now serves who needs as much, and is charged whole") {
  Keeping server;
  server.use(2 * least_kept);
  CHECK(server.memory.freed.empty());
  CHECK(server.memory.freed.kept_bytes() == 2 * least_kept);
  CHECK(server.account.used_bytes() == 0);

  ChargedMemory brought(server.account);
  REQUIRE(brought.grow(1000, 1000, Charging::normal));
  std::memset(brought.begin(), 'n', 1000);
  REQUIRE(brought.grow(2000, 2 * least_kept - 1000, Charging::normal));
  CHECK(brought.size_bytes() == 2 * least_kept);
  CHECK(brought.all().substr(0, 1000) == std::string(1000, 'n'));
  CHECK(brought.all()[1000] == 'o');  // it is the same memory
  CHECK(server.account.used_bytes() == 2 * least_kept);
  CHECK(server.memory.freed.kept_bytes() == 0);
}

TEST_CASE("kept memory is for those who need nearly all of it, and have room for it") {
  Keeping server;
  server.use(4 * least_kept);
  ChargedMemory brought(server.account);
  REQUIRE(brought.grow(least_kept, 3 * least_kept, Charging::normal));
  CHECK(brought.size_bytes() == least_kept);
  CHECK(server.memory.freed.kept_bytes() == 4 * least_kept);

  Quota small(least_kept, &server.memory.all);
  ChargedMemory poor(small);
  REQUIRE(poor.grow(1000, 4 * least_kept, Charging::normal));
  CHECK(poor.size_bytes() == 1000);
  CHECK(server.memory.freed.kept_bytes() == 4 * least_kept);
}

TEST_CASE("no more is kept than was allowed, nor for longer, nor where memory is short") {
  using std::chrono::milliseconds;
  Keeping server;
  SUBCASE("for a while") {
    server.memory.freed.advance(muster::base::Instant(milliseconds(1000)));
    server.use(2 * least_kept);
    server.memory.freed.advance(muster::base::Instant(milliseconds(1499)));
    CHECK(server.memory.freed.kept_bytes() == 2 * least_kept);
    server.memory.freed.advance(muster::base::Instant(milliseconds(1500)));
    CHECK(server.memory.freed.kept_bytes() == 0);
    CHECK_FALSE(server.memory.freed.empty());
  }
  SUBCASE("so much") {
    Keeping another;
    another.use(9 * least_kept);
    CHECK(another.memory.freed.kept_bytes() == 0);
    CHECK_FALSE(another.memory.freed.empty());
  }
  SUBCASE("beside what is charged") {
    Keeping full(4 * least_kept);
    ChargedMemory held(full.account);
    ChargedMemory going(full.account);
    REQUIRE(going.grow(least_kept, 0, Charging::normal));
    REQUIRE(held.grow(3 * least_kept + 1, 0, Charging::always));
    going.release();
    CHECK(full.memory.freed.kept_bytes() == 0);
    CHECK_FALSE(full.memory.freed.empty());
  }
  SUBCASE("beside what is charged later") {
    Keeping full(4 * least_kept);
    full.use(2 * least_kept);
    full.account.charge_always(2 * least_kept);
    full.memory.fit_kept();
    CHECK(full.memory.freed.kept_bytes() == 2 * least_kept);
    full.account.charge_always(1);
    full.memory.fit_kept();
    CHECK(full.memory.freed.kept_bytes() == 0);
    CHECK_FALSE(full.memory.freed.empty());
    full.account.release(2 * least_kept + 1);
  }
  SUBCASE("where the system has none") {
    server.use(2 * least_kept);
    server.memory.all.set_short(true);
    CHECK(server.memory.freed.kept_bytes() == 0);
    CHECK(server.memory.freed.empty());
  }
}
