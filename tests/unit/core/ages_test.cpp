#include "core/session/tallies/ages.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/session/tallies/waiting_line.h"

namespace muster::core {
namespace {

using std::chrono::milliseconds;

constexpr Instant age_at(Duration duration) { return Instant(std::chrono::hours(1)) + duration; }

TEST_CASE("where there is none the oldest has no age") {
  Ages ages;
  CHECK(ages.count() == 0);
  CHECK(ages.oldest(age_at(milliseconds(5))) == Duration::zero());
  Ages::Place place;
  ages.enter(place, age_at(milliseconds(10)));
  CHECK(ages.count() == 1);
  place.leave();
  place.leave();
  CHECK(ages.count() == 0);
  CHECK(ages.oldest(age_at(milliseconds(5000))) == Duration::zero());
}

TEST_CASE("those that come together have the age of the first of them") {
  Ages ages;
  Ages::Place first;
  Ages::Place second;
  Ages::Place third;
  ages.enter(first, age_at(milliseconds(0)));
  ages.enter(second, age_at(milliseconds(250)));
  ages.enter(third, age_at(milliseconds(251)));
  first.leave();
  CHECK(ages.oldest(age_at(milliseconds(1000))) == milliseconds(1000));
  second.leave();
  CHECK(ages.oldest(age_at(milliseconds(1000))) == milliseconds(749));
  CHECK(ages.count() == 1);
}

TEST_CASE("whoever comes and goes, the oldest is known to a quarter of a second") {
  struct One {
    Instant came;
    Ages::Place place;
  };
  std::mt19937 random(7);
  Ages ages;
  std::vector<std::unique_ptr<One>> all;
  Instant now = age_at(milliseconds(0));
  for (int step = 0; step < 20000; ++step) {
    now += milliseconds(random() % 100);
    const bool comes = all.empty() || random() % 64 > all.size();
    if (comes) {
      all.push_back(std::make_unique<One>());
      all.back()->came = now;
      ages.enter(all.back()->place, now);
    } else {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(random() % all.size()));
    }
    REQUIRE(ages.count() == all.size());
    Duration oldest{};
    for (const auto& one : all) oldest = std::max(oldest, now - one->came);
    REQUIRE(ages.oldest(now) >= oldest);
    REQUIRE(ages.oldest(now) <= oldest + milliseconds(250));
  }
}

TEST_CASE("in a line the oldest is the first that is still there") {
  WaitingLine line;
  WaitingLine::Place first;
  std::optional<WaitingLine::Place> second(std::in_place);
  CHECK(line.oldest(age_at(milliseconds(1))) == Duration::zero());
  line.enter(first, age_at(milliseconds(10)));
  line.enter(*second, age_at(milliseconds(11)));
  CHECK(line.oldest(age_at(milliseconds(20))) == milliseconds(10));
  first.leave();
  CHECK(line.oldest(age_at(milliseconds(20))) == milliseconds(9));
  line.enter(first, age_at(milliseconds(15)));
  second.reset();
  CHECK(line.oldest(age_at(milliseconds(20))) == milliseconds(5));
  first.leave();
  first.leave();
  CHECK(line.oldest(age_at(milliseconds(20))) == Duration::zero());
}

}  // namespace
}  // namespace muster::core
