#include "linearizability/checker.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <random>
#include <utility>

#include <doctest/doctest.h>

using namespace muster::linear;

namespace {

/// A call from `called` to `answered`; negative: no answer came.
Operation at(int called, int answered, Kind kind) {
  Operation operation;
  operation.kind = kind;
  operation.called_ns = called;
  operation.answered_ns = answered;
  operation.is_known = answered >= 0;
  return operation;
}

Operation set(int called, int answered, const std::string& value) {
  Operation operation = at(called, answered, Kind::set);
  operation.argument = value;
  return operation;
}

Operation found(int called, int answered, Kind kind, std::optional<std::string> value) {
  Operation operation = at(called, answered, kind);
  operation.found = std::move(value);
  return operation;
}

Operation get(int called, int answered, std::optional<std::string> value) {
  return found(called, answered, Kind::get, std::move(value));
}

Operation take(int called, int answered, std::optional<std::string> value) {
  return found(called, answered, Kind::take, std::move(value));
}

Operation add(int called, int answered, const std::string& sum) {
  Operation operation = found(called, answered, Kind::add, sum);
  operation.argument = "1";
  return operation;
}

Operation compare_set(int called, int answered, std::optional<std::string> expected,
                      const std::string& value, bool is_applied,
                      std::optional<std::string> there = {}) {
  Operation operation = found(called, answered, Kind::compare_set, std::move(there));
  operation.expected = std::move(expected);
  operation.argument = value;
  operation.is_applied = is_applied;
  return operation;
}

TEST_CASE("what one client does after the other is linearizable as it was answered") {
  CHECK(is_linearizable({}));
  CHECK(is_linearizable({get(0, 1, {}), set(2, 3, "7"), get(4, 5, "7"), take(6, 7, "7"),
                         get(8, 9, {}), add(10, 11, "1"), add(12, 13, "2")}));
  CHECK(is_linearizable({compare_set(0, 1, {}, "1", true), compare_set(2, 3, {}, "2", false, "1"),
                         compare_set(4, 5, "1", "3", true), get(6, 7, "3")}));
}

TEST_CASE("a stale read is not") {
  CHECK_FALSE(is_linearizable({set(0, 1, "1"), set(2, 3, "2"), get(4, 5, "1")}));
  CHECK_FALSE(is_linearizable({set(0, 1, "1"), get(2, 3, {})}));
}

TEST_CASE("reads beside a write may see it or not, but not go back") {
  CHECK(is_linearizable({set(0, 1, "1"), set(2, 9, "2"), get(3, 4, "1"), get(5, 6, "2")}));
  CHECK_FALSE(is_linearizable({set(0, 1, "1"), set(2, 9, "2"), get(3, 4, "2"), get(5, 6, "1")}));
}

TEST_CASE("a value is taken once") {
  CHECK(is_linearizable({set(0, 1, "1"), take(2, 5, "1"), take(3, 4, {})}));
  CHECK_FALSE(is_linearizable({set(0, 1, "1"), take(2, 5, "1"), take(3, 4, "1")}));
}

TEST_CASE("an add that was applied twice is found") {
  CHECK(is_linearizable({add(0, 5, "1"), add(1, 4, "2"), get(6, 7, "2")}));
  CHECK_FALSE(is_linearizable({add(0, 5, "1"), add(1, 4, "2"), get(6, 7, "3")}));
  CHECK_FALSE(is_linearizable({add(0, 1, "1"), add(2, 3, "1")}));
}

TEST_CASE("a lost write is found") {
  CHECK_FALSE(
      is_linearizable({compare_set(0, 1, {}, "1", true), compare_set(2, 3, {}, "2", true)}));
}

TEST_CASE("a call without an answer took place once, later, or never") {
  const Operation unanswered = set(2, -1, "2");
  CHECK(is_linearizable({set(0, 1, "1"), unanswered, get(3, 4, "1")}));
  CHECK(is_linearizable({set(0, 1, "1"), unanswered, get(3, 4, "2")}));
  CHECK(is_linearizable({set(0, 1, "1"), unanswered, get(3, 4, "1"), get(5, 6, "2")}));
  CHECK_FALSE(is_linearizable({set(0, 1, "1"), unanswered, get(3, 4, "2"), get(5, 6, "1")}));
  CHECK_FALSE(is_linearizable({set(0, 1, "1"), get(-2, -1, "2"), get(3, 4, "2")}));
  CHECK(is_linearizable({add(0, -1, ""), add(1, 2, "1"), get(3, 4, "2")}));
  CHECK_FALSE(is_linearizable({add(0, -1, ""), add(1, 2, "1"), get(3, 4, "3")}));
}

TEST_CASE(
    "what a take without an answer has removed may be there again, but not over a new value") {
  const Operation unanswered = take(2, -1, {});
  CHECK(is_linearizable({set(0, 1, "1"), unanswered, get(3, 4, {}), get(5, 6, "1")}));
  CHECK(is_linearizable({set(0, 1, "1"), unanswered, get(3, 4, {}), take(5, 6, "1")}));
  CHECK_FALSE(is_linearizable(
      {set(0, 1, "1"), unanswered, get(3, 4, {}), take(5, 6, "1"), get(7, 8, "1")}));
  CHECK_FALSE(is_linearizable({set(0, 1, "1"), unanswered, get(3, 4, {}), set(5, 6, "2"),
                               take(7, 8, "2"), get(9, 10, "1")}));
  CHECK_FALSE(is_linearizable({set(0, 1, "1"), take(2, 3, "1"), get(4, 5, "1")}));
}

TEST_CASE("before it was called nothing takes place") {
  CHECK_FALSE(is_linearizable({get(0, 1, "1"), set(2, 3, "1")}));
  CHECK_FALSE(is_linearizable({get(0, 1, "1"), set(2, -1, "1")}));
}

/// By trying all orders: right for few operations, and so simple that it is right.
bool some_order_fits(const History& history) {
  std::vector<std::size_t> order(history.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    bool fits = true;
    for (std::size_t late = 0; late < order.size() && fits; ++late) {
      for (std::size_t early = 0; early < late; ++early) {
        // What was answered before the other was called may not stand behind it.
        fits = fits && !(history[order[late]].answered_ns < history[order[early]].called_ns);
      }
    }
    std::optional<std::string> value;
    for (std::size_t index = 0; index < order.size() && fits; ++index) {
      const Operation& operation = history[order[index]];
      if (operation.kind == Kind::set) value = operation.argument;
      if (operation.kind == Kind::get) fits = operation.found == value;
      if (operation.kind == Kind::take) fits = operation.found == std::exchange(value, {});
      if (operation.kind == Kind::add) {
        value = std::to_string((value ? std::stoi(*value) : 0) + 1);
        fits = operation.found == value;
      }
    }
    if (fits) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

TEST_CASE("it says the same as a search through all orders") {
  std::mt19937 random(20261121);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  const auto some_value = [&]() -> std::optional<std::string> {
    const int number = below(4);
    if (number == 0) return std::nullopt;
    return std::to_string(number);
  };
  std::array<int, 2> counts{};
  for (int round = 0; round < 4000; ++round) {
    History history;
    for (int index = 0; index < 6; ++index) {
      const int called = below(12);
      const int answered = called + 1 + below(6);
      switch (below(4)) {
        case 0: history.push_back(set(called, answered, std::to_string(1 + below(3)))); break;
        case 1: history.push_back(get(called, answered, some_value())); break;
        case 2: history.push_back(take(called, answered, some_value())); break;
        default: history.push_back(add(called, answered, std::to_string(1 + below(3)))); break;
      }
    }
    const bool is_right = some_order_fits(history);
    ++counts[is_right ? 1 : 0];
    CHECK(is_linearizable(history) == is_right);
  }
  CHECK(counts[0] > 100);
  CHECK(counts[1] > 100);
}

}  // namespace
