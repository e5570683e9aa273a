// A rank dies and comes back under its old number: the others learn that it was lost, nobody is
// given an object of the old epoch, and the next epoch has all of them again.

#include "in_one_process.h"
#include "muster/codec_cereal.h"

using namespace std::chrono_literals;
using example::require;
using muster::StatelessProcessGroup;

int main() {
  auto server = example::start_server();
  auto survivor_store = example::connect(server);
  auto supervisor = example::connect(server);
  std::optional<StatelessProcessGroup> survivor;
  std::optional<StatelessProcessGroup> victim;
  auto victim_store = example::connect(server);
  example::run_ranks(2, [&](int rank) {
    auto& store = rank == 0 ? survivor_store : victim_store;
    auto group = require(StatelessProcessGroup::create(store, "job", rank, 2));
    (rank == 0 ? survivor : victim) = std::move(group);
  });
  require(survivor->send_obj(1, std::string("of the old epoch")));

  // A supervisor knows that the process is dead; without one its silence would tell, later.
  require(supervisor.report_dead(victim_store.process().id, "the node was drained"));
  const auto passed = survivor->barrier(5s);
  require(!passed && passed.error().code == muster::ErrorCode::rank_lost, "the loss is told");
  require(passed.error().ranks[0].rank == 1, "with its rank");
  const auto fenced = victim->barrier(5s);
  require(!fenced && fenced.error().code == muster::ErrorCode::fenced, "a zombie is kept out");

  // The restarted process asks for its rank; the survivor regroups at the old size.
  std::thread restarted([&] {
    auto store = example::connect(server);
    auto group = require(StatelessProcessGroup::create(store, "job", 1, 2));
    require(require(group.recv_obj<std::string>(0, 0, 5s)) == "of the new epoch",
            "nothing of the old epoch is delivered");
  });
  muster::RegroupOptions same_size;
  same_size.new_size = 2;
  auto next = require(survivor->regroup(same_size, 5s));
  require(next.epoch() > survivor->epoch(), "epochs grow");
  require(next.send_obj(1, std::string("of the new epoch")));
  restarted.join();
  std::cout << "rank restarts: as promised\n";
  return 0;
}
