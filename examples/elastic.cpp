// A group grows from two ranks to four and shrinks to two again, without restarting anybody.

#include "in_one_process.h"
#include "muster/codec_cereal.h"

using namespace std::chrono_literals;
using example::require;
using muster::StatelessProcessGroup;

namespace {

std::vector<int> everybody(StatelessProcessGroup& group) {
  return require(group.all_gather_obj(group.rank(), 5s));
}

StatelessProcessGroup resize(StatelessProcessGroup& group, int new_size) {
  muster::RegroupOptions options;
  options.new_size = new_size;
  return require(group.regroup(options, 10s));
}

}  // namespace

int main() {
  auto server = example::start_server();
  example::run_ranks(4, [&](int rank) {
    auto store = example::connect(server);
    std::optional<StatelessProcessGroup> group;
    if (rank < 2) {
      auto small = require(StatelessProcessGroup::create(store, "job", rank, 2));
      require(store.set("small group is there", ""));
      require(everybody(small) == std::vector<int>{0, 1}, "two ranks");
      group = resize(small, 4);  // waits until the candidates below are there
    } else {
      require(store.wait({"small group is there"}, 10s));
      muster::GroupOptions options;
      options.standby = true;
      group = require(StatelessProcessGroup::create(store, "job", rank, 4, options));
    }
    require(everybody(*group) == std::vector<int>{0, 1, 2, 3}, "four ranks");
    if (group->rank() >= 2) {
      require(group->leave());
      return;
    }
    // Who leaves says so; the others see it at their next call and regroup.
    const auto passed = group->barrier(5s);
    require(!passed && passed.error().code == muster::ErrorCode::rank_left, "leaving is told");
    auto again = require(group->regroup({}, 10s));
    require(everybody(again) == std::vector<int>{0, 1}, "two ranks again");
  });
  std::cout << "elastic: as promised\n";
  return 0;
}
