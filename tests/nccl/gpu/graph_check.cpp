#include <algorithm>
#include <map>
#include <string>

#include "nccl/functions.h"
#include "nccl/gpu/bare.h"
#include "nccl/gpu/numbers.h"
#include "nccl/gpu/parts.h"

// Check 10: an all_reduce is captured into a graph, which is launched again and again.

namespace muster::test::gpu {
namespace {

Graph::Mode mode_of(const std::string& name) {
  static const std::map<std::string, Graph::Mode> modes{
      {"global", Graph::Mode::global},
      {"thread_local", Graph::Mode::thread_local_},
      {"relaxed", Graph::Mode::relaxed}};
  return modes.at(name);
}

/// By NCCL's own function, on the communicator's handle.
Result<void> native_sum(const Rank& rank, Communicator& communicator, const Sum& sum) {
  return nccl::with_native(communicator, [&](nccl::Handle handle) -> Result<void> {
    const int result =
        nccl_functions(rank).all_reduce(sum.from.at(), sum.to.at(), sum.count,
                                        static_cast<int>(sum.type), 0, handle, sum.stream.handle());
    if (result != nccl_internal::in_progress) must(result, "ncclAllReduce");
    return {};
  });
}

}  // namespace

void capture(Rank& rank) {
  constexpr int between_looks = 100;
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  auto communicator = rank.create(group);
  Numbers numbers(rank);
  const Sum sum = numbers.sum();
  const Stream& stream = numbers.stream();
  const bool is_native = rank.text("by") == "with_native";
  const Graph graph(rank.driver(), stream, mode_of(rank.text("capture")), [&] {
    require(is_native ? native_sum(rank, communicator, sum) : sum.over(communicator));
  });
  rank.expect(stream.is_idle(), "something runs that was only captured");
  require(group.barrier());
  long done = 0;
  const auto began = Clock::now();
  for (const long wanted = rank.number("times"); rank.has_more(done < wanted);) {
    // Other numbers each time: the graph reads them anew.
    numbers.give(done + rank.index());
    numbers.clear();
    for (int index = 0; index < between_looks; ++index, ++done) graph.launch(stream);
    const auto seen = numbers.received();
    const auto right = (done - between_looks) * rank.size() + rank.size() * (rank.size() - 1) / 2;
    if (seen != right) {
      throw Failure("a replay gave " + std::to_string(seen) + ", not " + std::to_string(right));
    }
  }
  rank.figure("replays", static_cast<double>(done), "");
  rank.figure("each", ms_since(began) * 1000 / static_cast<double>(std::max(done, 1L)), "us");
  require(group.barrier());
}

}  // namespace muster::test::gpu
