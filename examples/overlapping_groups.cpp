// Overlapping groups {0,1,2,3} and {0,1,2} over one connection per rank: a broadcast in one never
// shows up in the other, and both barriers pass.

#include "in_one_process.h"
#include "muster/codec_cereal.h"

using namespace std::chrono_literals;
using example::require;
using muster::StatelessProcessGroup;

int main() {
  auto server = example::start_server();
  example::run_ranks(4, [&](int rank) {
    auto store = example::connect(server);
    auto wide = require(StatelessProcessGroup::create(store, "wide", rank, 4));
    require(require(wide.broadcast_obj(rank, muster::Rank{2})) == 2,
            "rank 2's value in the wide group");
    if (rank < 3) {
      auto narrow = require(StatelessProcessGroup::create(store, "narrow", rank, 3));
      const auto value = rank == 2 ? 3 : rank;
      require(require(narrow.broadcast_obj(value, muster::Rank{2})) == 3,
              "rank 2's value in the narrow group");
      require(narrow.barrier(5s));
    }
    require(wide.barrier(5s));
  });
  std::cout << "overlapping groups: as promised\n";
  return 0;
}
