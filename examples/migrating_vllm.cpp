// The calls of a Python StatelessProcessGroup, one after the other, as they are written here; see
// docs/migrating.md for what differs.

#include <unistd.h>

#include "in_one_process.h"
#include "muster/codec_json.h"

using namespace std::chrono_literals;
using example::require;
using muster::JsonCodec;
using muster::Rank;
using muster::StatelessProcessGroup;

namespace {

constexpr int world_size = 3;

/// create: rank 0 serves, everybody joins, and it returns when all are there.
StatelessProcessGroup create(const std::string& host, std::uint16_t port, int rank) {
  return require(StatelessProcessGroup::create(host, port, rank, world_size, 3600s, 300s));
}

/// send_obj, recv_obj: two senders to one receiver are two streams.
void send_and_receive(StatelessProcessGroup& group) {
  if (group.rank() < 2) {
    require(group.send_obj<JsonCodec>(Rank{2}, "from " + std::to_string(group.rank())));
    return;
  }
  for (const int source : {0, 1}) {
    const auto object = require(group.recv_obj<std::string, JsonCodec>(Rank{source}, 30s));
    require(object == "from " + std::to_string(source), "each sender has a stream of its own");
  }
}

/// recv_obj: a time-out takes nothing away.
void receive_again(StatelessProcessGroup& group) {
  if (group.rank() == 1) {
    const auto early = group.recv_obj<int, JsonCodec>(Rank{0}, 20ms);
    require(!early && early.error().code == muster::ErrorCode::timed_out, "nothing was sent yet");
  }
  require(group.barrier(30s));
  if (group.rank() == 0) require(group.send_obj<JsonCodec>(Rank{1}, 7));
  if (group.rank() == 1) {
    require(require(group.recv_obj<int, JsonCodec>(Rank{0}, 30s)) == 7, "asked again, got it");
  }
}

/// broadcast_obj, all_gather_obj: each rank names its own object, the others' is ignored.
void collectives(StatelessProcessGroup& group) {
  const std::string mine = group.rank() == 2 ? "secret" : "";
  const auto secret = require(group.broadcast_obj<JsonCodec>(mine, Rank{2}, 30s));
  require(secret == "secret", "everybody has the source's object");
  const std::vector<int> ranks = require(group.all_gather_obj<JsonCodec>(group.rank(), 30s));
  require(ranks == std::vector<int>{0, 1, 2}, "element i is of rank i");
}

/// barrier: the error names who did not come.
void pass_barrier(StatelessProcessGroup& group) {
  const auto passed = group.barrier(30s);
  if (passed) return;
  const muster::Error& error = passed.error();
  for (const muster::RankReport& missing : error.ranks) {
    std::cerr << "rank " << missing.rank << " on " << missing.process.host << " did not come\n";
  }
  require(false, error.message());
}

}  // namespace

int main() {
  const std::string address = "unix:/tmp/muster-example-" + std::to_string(::getpid());
  example::run_ranks(world_size, [&](int rank) {
    auto group = create(address, 0, rank);  // a Unix socket has no port; else "trainer-0", 29500
    send_and_receive(group);
    receive_again(group);
    collectives(group);
    // Nothing has to be expired by hand: everything was fetched.
    require(require(group.expire_data(0s)) == 0, "nothing of this rank is left");
    pass_barrier(group);  // rank 0, which serves, leaves it last
  });
  std::cout << "migrating from a Python group: as promised\n";
  return 0;
}
