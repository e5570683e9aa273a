#include <chrono>
#include <cstdlib>
#include <future>
#include <string>
#include <utility>

#include "nccl/communicator_machine.h"

// Communicators in NCCL's blocking mode: a call that waits inside NCCL returns only when another
// thread aborts it.

namespace muster::test {
namespace {

using Clock = std::chrono::steady_clock;

/// Longer than this nobody waits who does not wait for something.
constexpr std::chrono::seconds leeway{10};

nccl::Options blocking(Duration timeout = 20s) {
  nccl::Options options = doubled(timeout);
  options.mode = nccl::Mode::blocking;
  options.abort_timeout = 60s;  // nothing here waits so long
  return options;
}

TEST_CASE_FIXTURE(Machine, "a call that waits inside NCCL ends at its deadline") {
  run_communicators(
      team_size, blocking(), [](Communicator& communicator, StatelessProcessGroup& group) {
        Buffer buffer(communicator.rank(), 1);
        if (communicator.rank() == 0) {
          const auto began = Clock::now();
          const Error error = must_fail(reduce(communicator, buffer, 300ms));  // it has to connect
          CHECK(error.code == ErrorCode::timed_out);
          CHECK(Clock::now() - began >= 300ms);
          CHECK(Clock::now() - began < leeway);
          CHECK(communicator.error()->code == ErrorCode::timed_out);
        }
        must(group.barrier());
        buffer.values();
      });
}

TEST_CASE_FIXTURE(Machine, "a call that waits inside NCCL ends when a rank leaves") {
  run_communicators(team_size, blocking(),
                    [](Communicator& communicator, StatelessProcessGroup& group) {
                      Buffer buffer(communicator.rank(), 1);
                      if (communicator.rank() == 2) {
                        must(group.store().get("others are inside"));
                        must(group.leave());
                        return;
                      }
                      if (communicator.rank() == 1) {
                        let_pass(50ms);  // rank 0 is inside by now; if it is not, it hears the same
                        must(group.store().set("others are inside", ""));
                      }
                      const auto began = Clock::now();
                      const Error error = must_fail(reduce(communicator, buffer));
                      CHECK(error.code == ErrorCode::rank_left);
                      CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
                      CHECK(Clock::now() - began < leeway);
                      buffer.values();
                    });
}

TEST_CASE_FIXTURE(Machine, "an abort by another thread brings back who is inside NCCL") {
  run_communicators(team_size, blocking(),
                    [](Communicator& communicator, StatelessProcessGroup& group) {
                      Buffer buffer(communicator.rank(), 1);
                      if (communicator.rank() == 0) {
                        auto aborting = std::async(std::launch::async, [&] {
                          let_pass(50ms);
                          communicator.abort();
                        });
                        CHECK(must_fail(reduce(communicator, buffer)).code == ErrorCode::aborted);
                      }
                      must(group.barrier());
                      buffer.values();
                    });
}

TEST_CASE_FIXTURE(Machine, "a creation in which a rank hangs inside NCCL ends at its deadline") {
  struct Hang {
    std::string phase;
    RankRange ranks;  ///< that wait
  };
  for (const Hang& hang : {Hang{"init", {0, 2}}, Hang{"ring", {0, 2}}, Hang{"ready", {1, 1}}}) {
    CAPTURE(hang.phase);
    REQUIRE(nccl().fault((hang.phase + ":forever@1*1").c_str()) == 0);
    auto server = start_server();
    run_ranks(team_size, [&](int rank) {
      auto store = connect(server);
      auto group = join(store, "g", rank, team_size);
      const auto began = Clock::now();
      const Error error = must_fail(nccl::create(group, rank, blocking(1s)));
      CHECK(error.code == ErrorCode::timed_out);
      CHECK(error.rank_ranges == std::vector<RankRange>{hang.ranks});
      CHECK(Clock::now() - began < leeway);
      auto communicator = must(nccl::create(group, rank, blocking()));  // the next one is another
      Buffer buffer(rank, 1);
      buffer.fill({rank});
      must(reduce(communicator, buffer));
      CHECK(buffer.values().front() == 3);
      must(group.barrier());
    });
    nccl().clear_faults();
    nccl::forgive_attempts();
    await([] { return nccl().count("communicators") == 0; });
  }
}

TEST_CASE_FIXTURE(Machine, "one that blocks goes on when NCCL has refused a call") {
  nccl::Options options = blocking();
  options.warm_up = true;
  run_communicators(
      team_size, options, [](Communicator& communicator, StatelessProcessGroup& group) {
        Buffer buffer(communicator.rank(), 1);
        buffer.fill({1});
        if (communicator.rank() == 0) {
          for (const int refusal : {4, 5}) {
            const auto fault = "collective:result=" + std::to_string(refusal) + "@0*1";
            REQUIRE(nccl().fault(fault.c_str()) == 0);
            const Error error = must_fail(reduce(communicator, buffer));
            CHECK(error.code == ErrorCode::nccl);
            CHECK(error.actual == static_cast<std::uint64_t>(refusal));
            CHECK_FALSE(communicator.error());
          }
          REQUIRE(nccl().fault("collective:result=4@0+1*1") == 0);
          CHECK(must_fail(communicator.grouped([&]() -> Result<void> {
                  must(reduce(communicator, buffer));
                  return reduce(communicator, buffer);
                })).actual == 4);
          CHECK_THROWS_AS((void)communicator.grouped([&]() -> Result<void> {
            must(reduce(communicator, buffer));
            throw std::runtime_error("no");
          }),
                          std::runtime_error);
          CHECK_FALSE(communicator.error());
        }
        must(group.barrier());
        must(reduce(communicator, buffer));
        CHECK(buffer.values().front() == team_size);
        must(group.barrier());
        must(communicator.close());
        must(group.barrier());
      });
}

TEST_CASE_FIXTURE(Machine, "an end in order that NCCL does not come to the end of is cut short") {
  run_communicators(team_size, blocking(),
                    [](Communicator& communicator, StatelessProcessGroup& group) {
                      if (communicator.rank() == 0) {
                        REQUIRE(nccl().fault("finalize:forever@0*1") == 0);
                        const auto began = Clock::now();
                        CHECK(must_fail(communicator.close(300ms)).code == ErrorCode::timed_out);
                        CHECK(Clock::now() - began < leeway);
                      }
                      must(group.barrier());
                    });
}

/// What a close tells in which NCCL hangs, whatever happens, as it does while a graph holds an
/// operation of the communicator.
Error close_hanging(Communicator& communicator, Duration timeout) {
  REQUIRE(nccl().fault("finalize:hang@0*1") == 0);
  std::promise<void> closed;
  auto letting_go = std::async(std::launch::async, [is_closed = closed.get_future()] {
    is_closed.wait_for(leeway);
    nccl().clear_faults();
  });
  const auto began = Clock::now();
  const auto result = communicator.close(timeout);
  CHECK(Clock::now() - began < leeway);
  closed.set_value();
  letting_go.get();
  return must_fail(result);
}

TEST_CASE_FIXTURE(Machine, "an end in order that no abort cuts short is left at its deadline") {
  run_communicators(team_size, blocking(),
                    [](Communicator& communicator, StatelessProcessGroup& group) {
                      if (communicator.rank() == 0) {
                        const auto began = Clock::now();
                        CHECK(close_hanging(communicator, 300ms).code == ErrorCode::timed_out);
                        CHECK(Clock::now() - began >= 300ms);
                      }
                      must(group.barrier());
                    });
}

TEST_CASE_FIXTURE(Machine, "an abort brings back who closes, though NCCL does not return") {
  run_communicators(team_size, blocking(),
                    [](Communicator& communicator, StatelessProcessGroup& group) {
                      if (communicator.rank() == 0) {
                        auto aborting = std::async(std::launch::async, [&] {
                          let_pass(50ms);
                          communicator.abort();
                        });
                        CHECK(close_hanging(communicator, 60s).code == ErrorCode::aborted);
                      }
                      must(group.barrier());
                    });
}

TEST_CASE_FIXTURE(Machine,
                  "an abort waits for the host's own work on the handle, up to its limit") {
  nccl::Options options = blocking();
  options.warm_up = true;
  run_communicators(
      team_size, options, [](Communicator& communicator, StatelessProcessGroup& group) {
        if (communicator.rank() == 0) {
          const auto lent =
              nccl::with_native(communicator, [&](nccl::Handle handle) -> Result<void> {
                communicator.abort();
                let_pass(200ms);
                int rank = -1;
                CHECK(nccl().rank(handle, &rank) == 0);  // it is there still
                return {};
              });
          CHECK(must_fail(lent).code == ErrorCode::aborted);
        }
        must(group.barrier());
      });
}

TEST_CASE_FIXTURE(Machine, "the environment's mode is not to be another one than the option's") {
  auto server = start_server();
  auto store = connect(server);
  auto group = join(store, "g", 0, 1);
  const auto is_made = [&](const char* value, const nccl::Options& options) {
    ::setenv("NCCL_COMM_BLOCKING", value, 1);
    const auto made = nccl::create(group, 0, options);
    ::unsetenv("NCCL_COMM_BLOCKING");
    if (!made) {
      CHECK(made.error().code == ErrorCode::nccl);
      CHECK(made.error().detail.find("NCCL_COMM_BLOCKING=") != std::string::npos);
    }
    return made.has_value();
  };
  CHECK(is_made("1", blocking()));
  CHECK_FALSE(is_made("0", blocking()));
  CHECK(is_made("0", doubled()));
  CHECK_FALSE(is_made("1", doubled()));
}

}  // namespace
}  // namespace muster::test
