#include <optional>
#include <string>
#include <vector>

#include "nccl/gpu/numbers.h"
#include "nccl/gpu/parts.h"

// Check 7: each rank is in a group with the next one and one with the last one, and begins with its
// own. NCCL connects in the first collective. Each group has a stream of its own: on one stream the
// second operation would wait for the first.

namespace muster::test::gpu {
namespace {

/// The groups one after the other in an order that all share, as they have to be formed.
struct Pairs {
  explicit Pairs(Rank& rank) {
    for (int owner = 0; owner < rank.size(); ++owner) {
      const std::string name = "pair " + std::to_string(owner);
      if (owner == rank.index()) own = rank.join(name, 0, 2);
      if ((owner + 1) % rank.size() == rank.index()) other = rank.join(name, 1, 2);
    }
  }
  std::optional<StatelessProcessGroup> own;
  std::optional<StatelessProcessGroup> other;
};

}  // namespace

void ring(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto everybody = rank.join("everybody");
  Pairs pairs(rank);
  const bool is_warm = rank.number("warm_up") == 1;
  nccl::Options options = rank.options();
  options.warm_up = is_warm;
  nccl::Communicators communicators;
  const std::vector<nccl::Request> requests{{&*pairs.own, rank.device(), options},
                                            {&*pairs.other, rank.device(), options}};
  for (const auto& made : communicators.create_all(requests)) require(made);
  const Numbers with_next(rank);
  const Numbers with_last(rank);
  require(everybody.barrier());
  const auto sum_over = [&](StatelessProcessGroup& group, const Numbers& numbers) {
    return numbers.sum().over(*communicators.find(group), rank.ms("deadline_ms"));
  };
  const auto judge = [&](const Numbers& numbers, int other) {
    const auto seen = numbers.received();
    rank.expect(seen == Numbers::share_of(rank.index()) + Numbers::share_of(other),
                "the sum with rank " + std::to_string(other) + " is " + std::to_string(seen));
  };
  const auto began = Clock::now();
  const auto first = sum_over(*pairs.own, with_next);
  rank.figure("the first call", ms_since(began), "ms");
  if (is_warm) {
    require(first);
    require(sum_over(*pairs.other, with_last));
    judge(with_next, (rank.index() + 1) % rank.size());
    judge(with_last, (rank.index() + rank.size() - 1) % rank.size());
  } else {
    rank.expect(!first, "a first collective went on without the others");
  }
  require(everybody.barrier());
}

}  // namespace muster::test::gpu
