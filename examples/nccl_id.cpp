// Two overlapping groups of three processes, each with an NCCL id of its own. What would follow is
// ncclCommInitRankConfig with the id, the group's rank and its world_size.
//
// Ends with 77 where there is no libnccl.

#include "muster/nccl_id.h"

#include "in_one_process.h"
#include "muster/codec_raw.h"

using namespace std::chrono_literals;
using example::require;
using muster::StatelessProcessGroup;

namespace {

/// Ends the example with 77 where NCCL is not installed.
muster::nccl::UniqueId nccl_id_of(StatelessProcessGroup& group) {
  auto id = muster::nccl::unique_id(group, 10s);
  if (!id && id.error().code == muster::ErrorCode::library_missing) {
    std::cout << "skipped: " << id.error().message() << std::endl;
    std::_Exit(77);
  }
  return require(std::move(id));
}

}  // namespace

int main() {
  auto server = example::start_server();
  example::run_ranks(3, [&](int rank) {
    auto store = example::connect(server);
    auto all = require(StatelessProcessGroup::create(store, "all", rank, 3));
    const muster::nccl::UniqueId id = nccl_id_of(all);
    for (const auto& theirs : require(all.all_gather_obj<muster::RawCodec>(id))) {
      require(theirs == id, "one id for all ranks");
    }
    if (rank < 2) {
      auto pair = require(StatelessProcessGroup::create(store, "pair", rank, 2));
      require(nccl_id_of(pair) != id, "another group has another id");
      require(pair.barrier());
    }
    require(all.barrier());
  });
  std::cout << "NCCL ids: as promised\n";
  return 0;
}
