#include "client/link/spinners.h"

#include <doctest/doctest.h>

namespace muster::client {
namespace {

constexpr std::size_t one_kind = 0;
constexpr std::size_t other_kind = 1;

/// How many of so many calls of the kind look, each of which is answered in time or is not.
int looks_count(Spinners& spinners, std::size_t kind, int calls, bool is_answered) {
  int looks = 0;
  for (int count = 0; count < calls; ++count) {
    if (!spinners.begin(kind)) continue;
    spinners.end(kind, is_answered);
    ++looks;
  }
  return looks;
}

TEST_CASE("callers look while answers come soon, and hardly when they do not") {
  Spinners spinners(1);
  CHECK(looks_count(spinners, one_kind, 1000, true) == 1000);
  const int looks = looks_count(spinners, one_kind, 1000, false);
  CHECK(looks >= 100);  // it may have become faster
  CHECK(looks <= 150);
  CHECK(looks_count(spinners, one_kind, 1000, true) >= 960);  // it has
}

TEST_CASE("one kind of request says nothing of another") {
  Spinners spinners(1);
  looks_count(spinners, one_kind, 17, false);
  CHECK(looks_count(spinners, other_kind, 100, true) == 100);
  CHECK(looks_count(spinners, one_kind, 10, true) < 10);
}

TEST_CASE("an answer of a few that comes soon is worth it") {
  Spinners spinners(1);
  for (int count = 0; count < 1000; ++count) {
    REQUIRE(spinners.begin(one_kind));
    spinners.end(one_kind, count % 8 == 0);
  }
}

TEST_CASE("only so many look at a time") {
  Spinners none(0);
  CHECK_FALSE(none.begin(one_kind));
  Spinners spinners(2);
  REQUIRE(spinners.begin(one_kind));
  REQUIRE(spinners.begin(other_kind));
  CHECK_FALSE(spinners.begin(one_kind));
  spinners.end(one_kind, true);
  CHECK(spinners.begin(other_kind));
}

}  // namespace
}  // namespace muster::client
