// A call that times out does so at its own deadline, and says which ranks did not come.

#include "in_one_process.h"

using namespace std::chrono_literals;
using example::require;

int main() {
  auto server = example::start_server();
  example::run_ranks(3, [&](int rank) {
    auto store = example::connect(server, "pod-" + std::to_string(rank));
    auto group = require(muster::StatelessProcessGroup::create(store, "g", rank, 3));
    if (rank != 2) {  // rank 2 forgets the barrier
      const auto began = std::chrono::steady_clock::now();
      const auto passed = group.barrier(rank == 0 ? 1s : 60s);  // the earliest decides for all
      const auto took = std::chrono::steady_clock::now() - began;
      require(!passed, "the barrier cannot pass");
      const muster::Error& error = passed.error();
      require(error.code == muster::ErrorCode::timed_out, error.message());
      require(error.ranks.size() == 1 && error.ranks[0].rank == 2, "rank 2 is named");
      require(error.ranks[0].process.label == "pod-2", "with its label");
      require(took < 5s, "at the deadline, not minutes later");
      if (rank == 0) std::cout << error.message() << '\n';
      require(store.set("too late/" + std::to_string(rank), ""));
    } else {
      // It comes late and is told the same outcome at once: all are in step again.
      require(store.wait({"too late/0", "too late/1"}, 10s));
      require(!group.barrier(5s), "a round has one outcome, also for those who come late");
    }
    require(group.barrier(5s));
  });
  std::cout << "who is missing: as promised\n";
  return 0;
}
