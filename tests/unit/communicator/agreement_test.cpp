#include "communicator/agreement.h"

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "client/failure.h"
#include "muster/codec.h"
#include "muster/communicator.h"
#include "support/ranks.h"

// How ranks agree on a communicator, over a real group; NCCL's or Gloo's part is a function.

namespace muster::communicator {
namespace {

using namespace std::chrono_literals;

/// A communicator that is nothing but its gate.
struct FakeImpl {
  void end(const Error& why) { ended.push_back(why.code); }
  std::optional<Error> commit(CreationTimes given) {
    times = given;
    return refused_commit;
  }
  Gate& gate() { return own_gate; }

  Gate own_gate;
  CreationTimes times;
  std::optional<Error> refused_commit;
  std::vector<ErrorCode> ended;
};

struct Outcome {
  Result<std::shared_ptr<FakeImpl>> made;
  std::shared_ptr<FakeImpl> impl;
  int abandoned_count = 0;
};

using Enter = std::function<Result<void>(FakeImpl& impl)>;

Outcome finish(StatelessProcessGroup& group, const Enter& enter, Duration timeout = 20s) {
  const auto impl = std::make_shared<FakeImpl>();
  int abandoned_count = 0;
  const Agreement agreement(group, codec_id::nccl_communicator, timeout);
  FailureNotice notice(group);
  auto made = agreement.finish(
      impl, notice, [&] { return enter(*impl); }, [&] { ++abandoned_count; });
  return {std::move(made), impl, abandoned_count};
}

Enter failing(ErrorCode code, std::uint64_t actual = 0) {
  return [=](FakeImpl&) -> Result<void> {
    Error error = client::failure(code, "");
    error.actual = actual;
    return error;
  };
}

using Part = std::function<void(StatelessProcessGroup& group)>;

void run_groups(int world_size, const Part& part, const ServerOptions& options = {}) {
  auto server = test::start_server(options);
  test::run_ranks(world_size, [&](int rank) {
    auto store = test::connect(server);
    auto group = test::join(store, "g", rank, world_size);
    part(group);
    (void)group.barrier(1s);  // no rank leaves before the others have looked
  });
}

TEST_CASE("all ranks get it when all have succeeded") {
  run_groups(2, [](StatelessProcessGroup& group) {
    const Outcome outcome = finish(group, [](FakeImpl&) { return Result<void>(); });
    CHECK(outcome.made);
    CHECK(outcome.abandoned_count == 0);
    CHECK(outcome.impl->ended.empty());
    CHECK(outcome.impl->times.total >= outcome.impl->times.library);
    CHECK(outcome.impl->times.total > 0s);
  });
}

TEST_CASE("all rounds share one deadline") {
  run_groups(1, [](StatelessProcessGroup& group) {
    const Agreement agreement(group, codec_id::nccl_communicator, 60s);
    test::let_pass(2ms);
    const Duration passed = agreement.passed();
    CHECK(passed >= 2ms);
    CHECK(agreement.left() <= 60s - passed);
    CHECK(agreement.left() > 0s);
  });
}

TEST_CASE("no rank gets it when one has failed, and the cause is named before its consequences") {
  run_groups(4, [](StatelessProcessGroup& group) {
    const std::vector<Enter> enters = {failing(ErrorCode::aborted), failing(ErrorCode::timed_out),
                                       failing(ErrorCode::nccl, 6), failing(ErrorCode::nccl, 2)};
    const Outcome outcome = finish(group, enters[static_cast<std::size_t>(group.rank())]);
    REQUIRE_FALSE(outcome.made);
    const Error& error = outcome.made.error();
    CHECK(error.code == ErrorCode::nccl);
    CHECK(error.actual == 2);
    CHECK(error.operation == "create");
    CHECK(error.rank_ranges == std::vector<RankRange>{{3, 3}});
    CHECK(outcome.abandoned_count == 1);
    CHECK(outcome.impl->ended == std::vector{ErrorCode::nccl});
  });
}

TEST_CASE("a rank whose gate a loss has closed does not get it, though all have succeeded") {
  run_groups(1, [](StatelessProcessGroup& group) {
    const Outcome outcome = finish(group, [](FakeImpl& impl) -> Result<void> {
      impl.own_gate.close(client::failure(ErrorCode::rank_lost, ""));
      return {};
    });
    REQUIRE_FALSE(outcome.made);
    CHECK(outcome.made.error().code == ErrorCode::rank_lost);
    CHECK(outcome.abandoned_count == 1);
  });
}

TEST_CASE("a rank whose commit fails does not get it") {
  run_groups(1, [](StatelessProcessGroup& group) {
    const Outcome outcome = finish(group, [](FakeImpl& impl) -> Result<void> {
      impl.refused_commit = client::failure(ErrorCode::rank_lost, "");
      return {};
    });
    REQUIRE_FALSE(outcome.made);
    CHECK(outcome.made.error().code == ErrorCode::rank_lost);
    CHECK(outcome.made.error().operation == "create");
  });
}

TEST_CASE("a rank in doubt of the vote leaves the group, so that the others are told") {
  ServerOptions options;
  options.value_bytes_max = 4096;
  run_groups(
      2,
      [](StatelessProcessGroup& group) {
        const Outcome outcome = finish(group, [&](FakeImpl&) -> Result<void> {
          if (group.rank() == 1) return {};
          return client::failure(ErrorCode::nccl, std::string(8192, 'x'));  // more than it can send
        });
        REQUIRE_FALSE(outcome.made);
        CHECK(outcome.made.error().code ==
              (group.rank() == 0 ? ErrorCode::too_large : ErrorCode::rank_left));
        CHECK(outcome.abandoned_count == 1);
      },
      options);
}

TEST_CASE("a rank that does not vote is named, and the one that waited stays in the group") {
  std::promise<void> voted;
  run_groups(2, [&](StatelessProcessGroup& group) {
    if (group.rank() == 1) return voted.get_future().wait();
    const Outcome outcome = finish(
        group, [](FakeImpl&) { return Result<void>(); }, 300ms);
    REQUIRE_FALSE(outcome.made);
    CHECK(outcome.made.error().code == ErrorCode::timed_out);
    CHECK(outcome.made.error().rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(test::must(group.members(10s)).size() == 2);
    voted.set_value();
  });
}

TEST_CASE("a timeout that is not above zero is refused, and the vote has a part of the others") {
  run_groups(1, [](StatelessProcessGroup& group) {
    const Agreement none(group, codec_id::nccl_communicator, 0s);
    REQUIRE(none.refusal());
    CHECK(none.refusal()->code == ErrorCode::invalid_argument);
    const Agreement some(group, codec_id::nccl_communicator, 100s);
    CHECK_FALSE(some.refusal());
    const auto left = some.vote_begins() - Agreement::Clock::now();
    CHECK(left > 90s);
    CHECK(left <= 99s);
    CHECK(caused_elsewhere(client::failure(ErrorCode::rank_lost, "")).code == ErrorCode::aborted);
    CHECK(caused_elsewhere(client::failure(ErrorCode::timed_out, "")).code == ErrorCode::timed_out);
  });
}

}  // namespace
}  // namespace muster::communicator
