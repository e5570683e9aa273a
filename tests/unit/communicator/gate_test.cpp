#include "communicator/gate.h"

#include <optional>
#include <thread>

#include <doctest/doctest.h>

#include "client/failure.h"

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

TEST_CASE("whoever waits for all to leave waits for each, and no longer than told") {
  Gate gate;
  std::optional first(gate.enter());
  std::optional second(gate.enter());
  gate.close(why(ErrorCode::aborted));
  CHECK_FALSE(gate.wait_empty(1ms));
  std::thread leaving([&] {
    second.reset();
    first.reset();
  });
  CHECK(gate.wait_empty(20s));
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
