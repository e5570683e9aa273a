#include "core/session/answers.h"

#include <set>

#include <doctest/doctest.h>

namespace muster::core {
namespace {

Answers::node_type kept(std::uint64_t request_id, std::uint16_t code = 0) {
  auto made = std::make_unique<Answers::Kept>();
  made->request_id = request_id;
  made->answer.code = code;
  return made;
}

TEST_CASE("an answer is found by its request until it is taken, and only then") {
  Answers answers;
  CHECK(answers.find(7) == nullptr);
  CHECK(answers.take(7) == nullptr);
  CHECK(answers.insert(kept(7, 3)).code == 3);
  REQUIRE(answers.find(7) != nullptr);
  CHECK(answers.find(7)->code == 3);
  CHECK(answers.find(8) == nullptr);
  CHECK(answers.take(8) == nullptr);
  const Answers::node_type taken = answers.take(7);
  REQUIRE(taken != nullptr);
  CHECK(taken->request_id == 7);
  CHECK(taken->next == nullptr);
  CHECK(answers.size() == 0);
  CHECK(answers.find(7) == nullptr);
}

TEST_CASE("all answers are found however many there are, and in whatever order they go") {
  Answers answers;
  constexpr std::uint64_t count = 1000;
  const auto id_of = [](std::uint64_t number) { return number * number + 5; };
  for (std::uint64_t number = 0; number < count; ++number) {
    answers.insert(kept(id_of(number), static_cast<std::uint16_t>(number)));
  }
  CHECK(answers.size() == count);
  for (std::uint64_t step = 0; step < count; ++step) {
    const std::uint64_t number = step * 7 % count;  // each once, since 7 does not divide 1000
    const Answers::node_type taken = answers.take(id_of(number));
    REQUIRE(taken != nullptr);
    CHECK(taken->answer.code == number);
  }
  CHECK(answers.size() == 0);
}

TEST_CASE("draining hands out each answer once") {
  Answers answers;
  std::set<std::uint64_t> expected;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    answers.insert(kept(id));
    expected.insert(id);
  }
  std::set<std::uint64_t> found;
  answers.drain([&](Answers::node_type each) { CHECK(found.insert(each->request_id).second); });
  CHECK(found == expected);
  CHECK(answers.size() == 0);
  answers.insert(kept(1));
  CHECK(answers.find(1) != nullptr);
}

TEST_CASE("a chain as long as a client can make it needs no deep stack to go") {
  constexpr std::uint64_t inverse = 0xf1de83e19937733d;  // of the spread: these ids hash to 0..n
  Answers answers;
  for (std::uint64_t low = 0; low < 100'000; ++low) answers.insert(kept(low * inverse));
  CHECK(answers.size() == 100'000);
}

}  // namespace
}  // namespace muster::core
