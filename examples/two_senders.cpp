// Two ranks send to a third at the same time: every object arrives once, in its sender's order,
// and is never mistaken for one of the other sender.

#include "in_one_process.h"
#include "muster/codec_json.h"

using namespace std::chrono_literals;
using example::require;
using muster::JsonCodec;

int main() {
  constexpr int objects = 100;
  auto server = example::start_server();
  example::run_ranks(3, [&](int rank) {
    auto store = example::connect(server);
    auto group = require(muster::StatelessProcessGroup::create(store, "g", rank, 3));
    if (rank < 2) {
      for (int i = 0; i < objects; ++i) {
        require(group.send_obj<JsonCodec>(muster::Rank{2}, std::vector<int>{rank, i}));
      }
    } else {
      for (int i = 0; i < objects; ++i) {
        for (const int source : {0, 1}) {
          const auto object =
              require(group.recv_obj<std::vector<int>, JsonCodec>(muster::Rank{source}, 5s));
          require(object == std::vector<int>{source, i}, "the sender's next object");
        }
      }
    }
    require(group.barrier(5s));
  });
  std::cout << "two senders: as promised\n";
  return 0;
}
