#include "communicator/gate.h"

#include <chrono>
#include <optional>
#include <thread>

#include <doctest/doctest.h>

#include "client/failure.h"
#include "support/await.h"

namespace muster::communicator {
namespace {

using namespace std::chrono_literals;

Error why(ErrorCode code) { return client::failure(code, ""); }

TEST_CASE("who comes when the gate is closed is told why, by the first reason") {
  Gate gate;
  CHECK(gate.enter());
  CHECK_FALSE(gate.reason());
  CHECK(gate.close(why(ErrorCode::rank_lost)));
  CHECK_FALSE(gate.close(why(ErrorCode::aborted)));
  CHECK(gate.is_closed());
  CHECK(gate.reason()->code == ErrorCode::rank_lost);
  const auto pass = gate.enter();
  REQUIRE_FALSE(pass);
  CHECK(pass.error().code == ErrorCode::rank_lost);
}

TEST_CASE("waiting for a gate to be empty waits for each pass, and no longer than told") {
  Gate gate;
  std::optional first(gate.enter());
  std::optional second(gate.enter());
  gate.close(why(ErrorCode::aborted));
  CHECK_FALSE(gate.wait_empty(1ms));
  second.reset();
  CHECK_FALSE(gate.wait_empty(1ms));
  first.reset();
  CHECK(gate.wait_empty(0ms));
}

TEST_CASE("the last pass that goes wakes the thread that waits for it") {
  Gate gate;
  std::optional last(gate.enter());
  std::thread leaving([&] {
    test::let_pass(20ms);  // so that the other thread sleeps
    last.reset();
  });
  // The condition is read again when the time is up: only the time shows a missing wake-up.
  const auto began = std::chrono::steady_clock::now();
  CHECK(gate.wait_empty(60s));
  CHECK(std::chrono::steady_clock::now() - began < 30s);
  leaving.join();
}

TEST_CASE("a pass that was moved lets out once") {
  Gate gate;
  {
    auto pass = gate.enter();
    const Gate::Pass moved = *std::move(pass);
    CHECK_FALSE(gate.wait_empty(0ms));
  }
  CHECK(gate.wait_empty(0ms));
}

}  // namespace
}  // namespace muster::communicator
