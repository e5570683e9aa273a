// Three ranks sum a number on their GPUs; one goes, the other two find out while their GPUs wait
// for it, form the group again and go on.
//
// Ends with 77 where there is no NCCL, or not a GPU for each rank.

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "in_one_process.h"
#include "muster/nccl.h"
#include "weight_sync/staging.h"

using namespace std::chrono_literals;
using example::require;
using muster::Communicator;
using muster::StatelessProcessGroup;

namespace {

/// The value; ends the example with 77 where this machine cannot run it.
template <class T>
T require_or_skip(muster::Result<T> result) {
  using muster::ErrorCode;
  const bool is_possible = result || (result.error().code != ErrorCode::library_missing &&
                                      result.error().code != ErrorCode::no_device);
  if (is_possible) return require(std::move(result));
  std::cout << "skipped: " << result.error().message() << std::endl;
  std::_Exit(77);
}

Communicator communicator_of(StatelessProcessGroup& group, int device) {
  muster::nccl::Options options;
  options.timeout = 10s;
  return require_or_skip(muster::nccl::create(group, device, options));
}

/// Until the stream is done, or will never be: NCCL cannot go on, or a rank is gone.
muster::Result<void> await(Communicator& communicator, weight_sync::Staging& memory) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  for (;;) {
    const auto is_done = memory.is_done(0);
    if (auto error = communicator.error()) return *std::move(error);  // asks NCCL, too
    if (!is_done.has_value()) return is_done.error();
    if (*is_done) return {};
    if (std::chrono::steady_clock::now() > end) communicator.abort();
    std::this_thread::sleep_for(100us);
  }
}

/// Of all ranks' numbers.
muster::Result<float> sum(Communicator& communicator, weight_sync::Staging& memory, float own) {
  require(memory.fill(0, reinterpret_cast<const char*>(&own), sizeof own));
  void* const at = memory.at(0);
  auto summed = communicator.all_reduce(at, at, 1, muster::DataType::float32, muster::ReduceOp::sum,
                                        memory.stream(0));
  if (summed) summed = await(communicator, memory);
  if (!summed) return std::move(summed).error();
  require(memory.empty(0, reinterpret_cast<char*>(&own), sizeof own));
  return own;
}

}  // namespace

int main() {
  auto server = example::start_server();
  example::run_ranks(3, [&](int rank) {
    const int device = rank;
    const auto memory = require_or_skip(weight_sync::cuda_staging(device, sizeof(float)));
    auto store = example::connect(server);
    auto group = require(StatelessProcessGroup::create(store, "trainers", rank, 3));
    std::optional<Communicator> communicator = communicator_of(group, device);
    const auto own = static_cast<float>(rank + 1);
    require(require(sum(*communicator, *memory, own)) == 6, "1 + 2 + 3 is 6");
    require(group.barrier(10s));
    if (rank == 2) return require(group.leave());

    auto summed = sum(*communicator, *memory, own);  // waits for the rank that does not come
    require(!summed && summed.error().code == muster::ErrorCode::rank_left, "it is told who left");
    while (!summed) {
      communicator.reset();
      require(memory->wait(0));  // what hung on the stream was aborted
      group = require(group.regroup({}, 10s));
      communicator = communicator_of(group, device);
      summed = sum(*communicator, *memory, own);
    }
    require(*summed == 3, "1 + 2 is 3");
    require(communicator->close());
    require(group.barrier(10s));
  });
  std::cout << "NCCL, on device memory: as promised\n";
  return 0;
}
