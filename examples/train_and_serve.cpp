// A trainer of two processes, and inference servers that get its weights while it trains: one job.
// With musterd at 127.0.0.1:29500, on one node:
//
//     export MUSTER_STORE=127.0.0.1:29500 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4
//     for rank in 0 1 2 3; do RANK=$rank LOCAL_RANK=$rank train_and_serve & done; wait
//
// The model is a line through points: y = slope * x + offset.

#include <muster/runtime.h>
#include <muster/sampler.h>
#include <muster/tensor.h>
#include <muster/values.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace {

constexpr int trainer_count = 2;
constexpr int updates = 3;
constexpr int steps_per_update = 200;

/// Throws the error of a call that has failed: its text says what, where and who.
template <class T>
T value_of(muster::Result<T> result) {
  return std::move(result).value();
}

std::vector<int> ranks_from(int first, int last) {
  std::vector<int> ranks(static_cast<std::size_t>(last - first + 1));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

/// Rank 0 and all servers: the group in which weights travel.
std::vector<int> ranks_of_updates(int world_size) {
  std::vector<int> ranks = ranks_from(trainer_count, world_size - 1);
  ranks.insert(ranks.begin(), 0);
  return ranks;
}

/// One step: each trainer looks at its own points; the gradients are averaged over all.
void train(muster::RankGroup& trainers, const muster::DistributedSampler& sampler,
           std::vector<float>& weights) {
  std::vector<float> gradient(2, 0);
  const auto points = sampler.indices();
  for (const std::uint64_t point : points) {
    const float x = static_cast<float>(point) / 10;
    const float error = weights[0] * x + weights[1] - (3 * x + 1);
    gradient[0] += error * x / static_cast<float>(points.size());
    gradient[1] += error / static_cast<float>(points.size());
  }
  value_of(
      muster::all_reduce_tensor(trainers, muster::tensor_of(gradient), muster::ReduceOp::average));
  for (std::size_t index : {0U, 1U}) weights[index] -= 0.5F * gradient[index];
}

void run_trainer(muster::Runtime& runtime, std::optional<muster::RankGroup>& update_group) {
  const std::vector<int> ranks = ranks_from(0, trainer_count - 1);
  auto trainers = value_of(runtime.subgroup(ranks));
  muster::SamplerOptions share;
  share.rank = static_cast<std::uint64_t>(runtime.rank());
  share.replica_count = trainer_count;
  share.shuffle = true;
  auto sampler = value_of(muster::DistributedSampler::create(10, share));
  std::vector<float> weights(2, 0);
  for (int update = 0; update < updates; ++update) {
    sampler.set_epoch(static_cast<std::uint64_t>(update));
    for (int step = 0; step < steps_per_update; ++step) train(trainers, sampler, weights);
    if (!update_group) continue;  // rank 0 alone has the servers beside it
    const std::vector<muster::NamedTensorView> state = {{"line", muster::tensor_of(weights)}};
    value_of(muster::broadcast_state_dict(*update_group,
                                          muster::Span<const muster::NamedTensorView>(state)));
  }
}

void run_server(muster::Runtime& runtime, muster::RankGroup& update_group) {
  for (int update = 0; update < updates; ++update) {
    const auto state = value_of(muster::broadcast_state_dict(update_group, {}));
    const auto* const line = static_cast<const float*>(state.front().tensor.view().data);
    if (update + 1 < updates) continue;  // it would answer requests meanwhile
    std::cout << "rank " << runtime.rank() << " serves: the line is at "
              << std::lround(line[0] * 2 + line[1]) << " where x is 2\n";
  }
}

int run() {
  muster::Runtime runtime;
  value_of(runtime.init());
  if (runtime.world_size() <= trainer_count) {
    std::cerr << "start it as " << trainer_count + 1 << " processes at least\n";
    return 2;
  }
  std::optional<muster::RankGroup> update_group;
  const bool is_trainer = runtime.rank() < trainer_count;
  const std::vector<int> updated = ranks_of_updates(runtime.world_size());
  if (!is_trainer || runtime.rank() == 0) update_group = value_of(runtime.subgroup(updated));
  if (is_trainer) {
    run_trainer(runtime, update_group);
  } else {
    run_server(runtime, *update_group);
  }
  value_of(runtime.shutdown());
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
