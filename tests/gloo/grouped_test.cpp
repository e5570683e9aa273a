#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "gloo/machine.h"
#include "muster/gloo.h"
#include "support/ranks.h"

// What the host's own function does inside of `grouped`, beside the calls that belong there.

namespace muster::test {
namespace {

using Calls = std::function<Result<void>()>;

/// Of the host: no std::exception, and with something to be found again.
struct Mine {
  int number;
};

/// Which exception came out of `grouped`, and that it came at once.
std::string thrown_by(Communicator& communicator, const Calls& calls) {
  const auto began = std::chrono::steady_clock::now();
  const auto name_of = [&]() -> std::string {
    try {
      const auto done = communicator.grouped(calls);
      return done ? "" : done.error().message();
    } catch (const Mine& mine) {
      return "mine " + std::to_string(mine.number);
    } catch (const std::out_of_range& error) {
      return std::string("out of range ") + error.what();
    } catch (int number) {
      return std::to_string(number);
    }
  };
  std::string name = name_of();
  CHECK(std::chrono::steady_clock::now() - began < 10s);
  return name;
}

struct Throwing {
  std::string name;
  std::function<void()> work;
};
const Throwing throwing[] = {
    {"mine 7", [] { throw Mine{7}; }},
    {"out of range here", [] { throw std::out_of_range("here"); }},
    {"42", [] { throw 42; }},
};

TEST_CASE("an exception inside of grouped goes to the host, and that is all if nothing began") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    auto communicator = must(gloo::create(group, within(20s)));
    for (const auto& each : throwing) {
      CHECK(each.name == thrown_by(communicator, [&]() -> Result<void> {
              CHECK(must(sum_of(communicator, 1)) == 2);  // is done when it returns
              each.work();
              return {};
            }));
      CHECK(each.name == thrown_by(communicator, [&] {
              return communicator.grouped([&]() -> Result<void> {
                each.work();
                return {};
              });
            }));
      CHECK_FALSE(communicator.error());
      CHECK(must(sum_of(communicator, rank)) == 1);
    }
    must(communicator.close());
  });
}

TEST_CASE("an exception inside of grouped ends the communicator where something had begun") {
  auto server = start_server();
  for (const auto& each : throwing) {
    for (const bool is_nested : {false, true}) {
      CAPTURE(each.name);
      CAPTURE(is_nested);
      const std::string name = each.name + (is_nested ? " nested" : "");
      run_ranks(2, [&](int rank) {
        auto store = connect(server);
        auto group = join(store, name, rank, 2);
        auto communicator = must(gloo::create(group, within(20s)));
        std::int64_t number = 0;
        const Calls receive = [&] {
          return communicator.recv(&number, 1, DataType::int64, 1 - rank, nullptr);
        };
        if (rank == 0) {
          const Calls begin_and_throw = [&]() -> Result<void> {
            must(receive());
            each.work();
            return {};
          };
          CHECK(each.name == thrown_by(communicator, [&] {
                  return is_nested ? communicator.grouped(begin_and_throw) : begin_and_throw();
                }));
          REQUIRE(communicator.error());
          CHECK(communicator.error()->code == ErrorCode::aborted);
          CHECK(communicator.error()->detail.find("exception") != std::string::npos);
          CHECK(must_fail(sum_of(communicator, 1)).code == ErrorCode::aborted);
          must(store.set(name + "/over", ""));
        } else {
          must(store.get(name + "/over", 20s));
          CHECK_FALSE(sum_of(communicator, 1, 500ms));
        }
        must(group.barrier());
      });
    }
  }
}

TEST_CASE("a function that is none is refused, and nothing happens") {
  auto server = start_server();
  auto store = connect(server);
  auto group = join(store, "g", 0, 1);
  auto communicator = must(gloo::create(group, within(20s)));
  const Error error = must_fail(communicator.grouped(nullptr));
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK(error.operation == "grouped");
  CHECK(error.detail == "calls: empty");
  CHECK(must(sum_of(communicator, 5)) == 5);
}

}  // namespace
}  // namespace muster::test
