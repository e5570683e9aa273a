#include "client/waiter.h"

#include <memory>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "base/monotonic_now.h"

namespace muster::client {
namespace {

using namespace std::chrono_literals;
using base::monotonic_now;

TEST_CASE("what was given before the wait is there") {
  Waiter<std::string> waiter;
  CHECK_FALSE(waiter.is_given());
  waiter.give("here");
  CHECK(waiter.is_given());
  CHECK(waiter.wait_until(monotonic_now()));
  CHECK(waiter.take() == "here");
}

TEST_CASE("the wait ends when its time is over, and may be begun again") {
  Waiter<int> waiter;
  const auto begun = monotonic_now();
  CHECK_FALSE(waiter.wait_until(begun + 10ms));
  CHECK(monotonic_now() - begun >= 10ms);
  CHECK_FALSE(waiter.wait_until(begun));
  waiter.give(7);
  CHECK(waiter.wait_until(begun));
  CHECK(waiter.take() == 7);
}

TEST_CASE("a waiter may go as soon as it was given to") {
  std::thread giver;
  for (int round = 0; round < 2000; ++round) {
    auto waiter = std::make_unique<Waiter<int>>();
    if (giver.joinable()) giver.join();
    giver = std::thread([place = waiter.get(), round] { place->give(round); });
    REQUIRE(waiter->take() == round);
    waiter.reset();  // while the giver may still be on its way out
  }
  giver.join();
}

}  // namespace
}  // namespace muster::client
