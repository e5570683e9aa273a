// What it costs to read 64 keys at once.

#include "load.h"
#include "questions.h"

namespace muster::bench {
namespace {

constexpr int keys = 64;
constexpr std::size_t value_bytes = 64;
constexpr int connections = 8;

void fill(Swarm& swarm) {
  const std::string value(value_bytes, 'v');
  for (int key = 0; key < keys; ++key) {
    swarm.dialect(0).append_set(swarm.out(0), nth_key(key), value, 0);
    swarm.call(0);
  }
}

}  // namespace

void measure_multi_get(Run& run) {
  const auto subjects = run.start(all_kinds);
  LoadOptions options;
  options.duration = std::chrono::milliseconds(run.by_extent(10, 100, 300));
  const auto issue = [](Dialect& dialect, int, std::string& out) {
    dialect.append_multi_get(out, keys, value_bytes);
  };
  for (const Cores cores : {Cores::one, Cores::two}) {
    const Json parameters = {{"keys", keys},
                             {"value_bytes", value_bytes},
                             {"connections", connections},
                             {"cores", name_of(cores)}};
    if (!run.wants(parameters)) continue;
    place_client(cores);
    std::vector<std::unique_ptr<Swarm>> swarms;
    for (const auto& subject : subjects) {
      auto& swarm = swarms.emplace_back(std::make_unique<Swarm>(*subject));
      swarm->connect(connections);
      fill(*swarm);
    }
    take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
      run.record("multi_get", parameters, subjects[i]->name(),
                 load(*subjects[i], *swarms[i], issue, options));
    });
  }
}

}  // namespace muster::bench
