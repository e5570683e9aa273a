#include "base/fifo.h"

#include <deque>
#include <memory>
#include <random>

#include <doctest/doctest.h>

namespace muster::base {
namespace {

TEST_CASE("a fifo does what a deque does") {
  Fifo<int> fifo;
  std::deque<int> model;
  std::mt19937 random(1);
  for (int step = 0; step < 20'000; ++step) {
    const bool grows = (step / 5000) % 2 == 0;
    const auto choice = random() % 10;
    if (choice < (grows ? 6u : 3u)) {
      fifo.push_back(step);
      model.push_back(step);
    } else if (!model.empty() && choice < 9) {
      fifo.pop_front();
      model.pop_front();
    } else if (!model.empty()) {
      fifo.pop_back();
      model.pop_back();
    }
    REQUIRE(fifo.size() == model.size());
    REQUIRE(fifo.empty() == model.empty());
    if (model.empty()) continue;
    REQUIRE(fifo.front() == model.front());
    REQUIRE(fifo.back() == model.back());
    const std::size_t index = random() % model.size();
    REQUIRE(fifo[index] == model[index]);
  }
  fifo.clear();
  CHECK(fifo.empty());
}

TEST_CASE("a fifo lets go of what has left it") {
  Fifo<std::shared_ptr<int>> fifo;
  const auto element = std::make_shared<int>(1);
  for (int count = 0; count < 5; ++count) fifo.push_back(element);
  while (!fifo.empty()) fifo.pop_front();
  CHECK(element.use_count() == 1);
}

}  // namespace
}  // namespace muster::base
