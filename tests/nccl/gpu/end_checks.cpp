#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "nccl/gpu/numbers.h"
#include "nccl/gpu/parts.h"
#include "support/let_pass.h"

// Check 8: communicators that are closed while something is in the way. Each close must end, at its
// deadline at the latest, and leave the device to others.

namespace muster::test::gpu {
namespace {

/// More than its deadline a close takes only where it hangs.
constexpr auto leeway = 2s;

std::string outcome_of(const Result<void>& result) {
  return result ? std::string("ok") : std::string(name_of(result.error().code));
}

struct Closed {
  Result<void> result;
  double ms = 0;
};

Closed close(Communicator& communicator, Milliseconds deadline) {
  const auto began = Clock::now();
  Closed closed{communicator.close(deadline)};
  closed.ms = ms_since(began);
  return closed;
}

void judge(Rank& rank, const Closed& closed, Milliseconds deadline) {
  rank.figure("close (" + outcome_of(closed.result) + ")", closed.ms, "ms");
  rank.expect(closed.ms <= static_cast<double>((deadline + Milliseconds(leeway)).count()),
              "close took longer than its deadline of " + std::to_string(deadline.count()) +
                  " ms, and 2 s");
}

/// A communicator beside that which is closed, on the same device.
class Neighbour {
 public:
  Neighbour(Rank& rank, nccl::Communicators& all)
      : rank_(rank),
        group_(rank.join("neighbour")),
        communicator_(require(all.create(group_, rank.device(), rank.options()))),
        numbers_(rank) {}

  /// An all_reduce with the other rank's, and how long the call took.
  double use() {
    const auto began = Clock::now();
    require(numbers_.sum().over(*communicator_));
    const double ms = ms_since(began);
    rank_.expect(numbers_.is_right(), "the neighbour's sum is wrong");
    return ms;
  }
  void part() { require(group_.barrier()); }

 private:
  Rank& rank_;
  StatelessProcessGroup group_;
  std::shared_ptr<Communicator> communicator_;
  Numbers numbers_;
};

}  // namespace

void close_with_work(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  auto communicator = rank.create(group);
  const Stream stream(rank.driver());
  Memory memory(rank.driver(), rank.bytes());
  memory.set_bytes(0);
  const Sum sum = large_sum(memory, stream, rank.bytes());
  for (long index = 0; index < rank.number("queued"); ++index) require(sum.over(communicator));
  rank.figure("queued and not done", stream.is_idle() ? 0 : 1, "");
  judge(rank, close(communicator, patience), patience);
  stream.wait();
  require(group.barrier());
}

// Rank 0 closes while a kernel waits for rank 1, which closes nothing.
void close_unmatched(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  nccl::Communicators all;
  const auto communicator = require(all.create(group, rank.device(), rank.options()));
  Neighbour neighbour(rank, all);
  neighbour.use();
  const Stream stream(rank.driver());
  const Memory memory(rank.driver(), rank.bytes());
  const auto deadline = rank.ms("deadline_ms");
  if (rank.index() == 0) {
    const Sum sum = large_sum(memory, stream, rank.bytes());
    require(sum.over(*communicator));
    let_pass(50ms);
    rank.expect(!stream.is_idle(), "the stream is idle though rank 1 does not call");
    Closed closed;
    std::thread closing([&] { closed = close(*communicator, deadline); });
    let_pass(100ms);
    const double waited_ms = neighbour.use();
    closing.join();
    judge(rank, closed, deadline);
    rank.expect(!closed.result, "close went on without rank 1");
    rank.figure("a neighbour's call meanwhile", waited_ms, "ms");
    stream.wait();
  } else {
    neighbour.use();
  }
  neighbour.part();
}

// A graph that holds an all_reduce of the communicator lives on.
void close_with_graph(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  nccl::Communicators all;
  const auto communicator = require(all.create(group, rank.device(), rank.options()));
  Neighbour neighbour(rank, all);
  neighbour.use();
  const Numbers numbers(rank);
  std::unique_ptr<Graph> graph;
  try {
    graph = std::make_unique<Graph>(rank.driver(), numbers.stream(), Graph::Mode::relaxed,
                                    [&] { require(numbers.sum().over(*communicator)); });
  } catch (const Failure& failure) {
    throw NotRun(std::string("nothing could be captured: ") + failure.what());
  }
  graph->launch(numbers.stream());
  rank.expect(numbers.is_right(), "the graph's sum is wrong");
  const auto deadline = rank.ms("deadline_ms");
  judge(rank, close(*communicator, deadline), deadline);
  rank.figure("a neighbour's call afterwards", neighbour.use(), "ms");
  graph.reset();
  neighbour.part();
}

// The last rank leaves.
void close_after_regroup(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  auto before = rank.create(group);
  const Numbers numbers(rank);
  require(numbers.sum().over(before));
  numbers.stream().wait();
  require(group.barrier());
  if (rank.index() == rank.size() - 1) {
    require(group.leave());
    return;
  }
  const auto until = Clock::now() + patience;
  while (!before.error() && Clock::now() < until) let_pass(1ms);
  const auto left = before.error();
  rank.expect(left && left->code == ErrorCode::rank_left, "the leave was not told");
  auto regrouped = require(group.regroup({}, patience));
  const Closed closed = close(before, leeway);
  judge(rank, closed, Milliseconds(0));
  rank.expect(outcome_of(closed.result) == "rank_left",
              "close of the old communicator gave " + outcome_of(closed.result));
  auto after = rank.create(regrouped);
  const Stream stream(rank.driver());
  Memory memory(rank.driver(), rank.bytes());
  memory.set_bytes(0);
  const Sum sum = large_sum(memory, stream, rank.bytes());
  require(sum.over(after));
  judge(rank, close(after, patience), patience);
  stream.wait();
  require(regrouped.barrier());
}

}  // namespace muster::test::gpu
