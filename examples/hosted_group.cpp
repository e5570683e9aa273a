// The form that users of other process groups know: by host and port. Rank 0 serves, everybody
// joins, and a server that somebody else runs on the address is never adopted by accident.

#include <unistd.h>

#include "in_one_process.h"
#include "muster/codec_raw.h"

using namespace std::chrono_literals;
using example::require;
using muster::RawCodec;
using muster::StatelessProcessGroup;

int main() {
  const std::string path = "unix:/tmp/muster-example-" + std::to_string(::getpid());
  example::run_ranks(3, [&](int rank) {
    auto group = require(StatelessProcessGroup::create(path, 0, rank, 3, 3600s, 10s));
    const auto ids = require(group.all_gather_obj<RawCodec>(std::string(128, char('a' + rank))));
    require(ids.size() == 3 && ids[2] == std::string(128, 'c'), "raw bytes, such as an NCCL id");

    if (rank == 0) {
      // The address is taken, and no group was named that could be meant.
      const auto other = StatelessProcessGroup::create(path, 0, 0, 3, 3600s, 1s);
      require(!other && other.error().code == muster::ErrorCode::address_in_use, "it is refused");
    }
    // Rank 0 leaves a barrier last: afterwards it may take the server down.
    require(group.barrier(5s));
  });
  std::cout << "hosted group: as promised\n";
  return 0;
}
