// Overlapping groups {0,1} and {1,2}. Rank 0 goes; rank 1 has to restore the first group, and tells
// rank 2, which waits for it in the second, in place of letting it wait.

#include "in_one_process.h"
#include "muster/codec_cereal.h"

using namespace std::chrono_literals;
using example::require;
using muster::ErrorCode;
using muster::StatelessProcessGroup;

namespace {

/// A step of the job: waits for the other rank of the group.
muster::Result<int> step(StatelessProcessGroup& right, int value) {
  return right.all_reduce_obj(
      value, [](int a, int b) { return a + b; }, 30s);
}

/// The same once more after an interruption, however many there are: all are in step.
int step_in_the_end(StatelessProcessGroup& right, int value) {
  auto sum = step(right, value);
  while (!sum && sum.error().code == ErrorCode::interrupted) sum = step(right, value);
  return require(sum);
}

void be_between(StatelessProcessGroup left, StatelessProcessGroup& right) {
  const auto lost = left.barrier(30s);
  require(!lost && lost.error().code == ErrorCode::rank_left, "rank 0 has gone");
  require(right.interrupt("restores group 'left'"));
  left = require(left.regroup({}, 30s));  // here: loads a checkpoint, and more
  require(step_in_the_end(right, 1) == 3, "the sum of both");
  require(right.barrier(30s));
}

void be_right(StatelessProcessGroup& right) {
  const auto told = step(right, 2);  // rank 1 does not come
  require(!told && told.error().code == ErrorCode::interrupted, "rank 1 does something else");
  std::cout << "rank 2 is told: " << told.error().detail << '\n';
  require(step_in_the_end(right, 2) == 3, "the sum of both");
  require(right.barrier(30s));
}

}  // namespace

int main() {
  auto server = example::start_server();
  example::run_ranks(3, [&](int rank) {
    auto store = example::connect(server);
    if (rank == 0) {
      require(require(StatelessProcessGroup::create(store, "left", 0, 2)).leave());
      return;
    }
    auto right = require(StatelessProcessGroup::create(store, "right", rank - 1, 2));
    if (rank == 2) return be_right(right);
    be_between(require(StatelessProcessGroup::create(store, "left", 1, 2)), right);
  });
  std::cout << "recovery of overlapping groups: as promised\n";
  return 0;
}
