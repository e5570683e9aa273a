// The processes of a job meet, agree and work in turn. With musterd at 127.0.0.1:29500, on one
// node:
//
//     export MUSTER_STORE=127.0.0.1:29500 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2
//     RANK=0 LOCAL_RANK=0 job &
//     RANK=1 LOCAL_RANK=1 job &
//
// Alone, and without all this, it is a job of one process.

#include <muster/codec_cereal.h>
#include <muster/runtime.h>
#include <muster/turns.h>
#include <muster/values.h>

#include <iostream>
#include <string>

int main() {
  muster::Runtime runtime;  // of this process's environment
  if (auto begun = runtime.init(); !begun) {
    std::cerr << begun.error().message()
              << '\n';  // says who is missing, or which variable is wrong
    return 1;
  }
  // One rank loads, all get what it has loaded; while it loads the others wait.
  auto config = muster::on_rank_zero(runtime.world(), [](muster::Progress& progress) {
    progress("reading the configuration");
    return std::string("model=muster-7b");
  });
  auto longest =
      muster::all_reduce_value(*runtime.world().group(), runtime.rank() + 1, muster::ReduceOp::max);
  if (!config || !longest) return 1;
  std::cout << "rank " << runtime.rank() << " of " << runtime.world_size() << ", local rank "
            << runtime.local_rank() << ": " << *config << ", " << *longest << '\n';
  return runtime.shutdown() ? 0 : 1;
}
