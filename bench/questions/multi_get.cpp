// What it costs to read 64 keys at once.

#include "load.h"
#include "questions.h"

namespace muster::bench {
namespace {

constexpr int keys_at_once = 64;
constexpr int busy_connections = 8;

void set_keys(Swarm& swarm) {
  const std::string value(small_value_bytes, 'v');
  for (int key = 0; key < keys_at_once; ++key) {
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
    dialect.append_multi_get(out, keys_at_once, small_value_bytes);
  };
  for (const Cores cores : {Cores::one, Cores::two}) {
    const Json parameters = {{"keys", keys_at_once},
                             {"value_bytes", small_value_bytes},
                             {"connections", busy_connections},
                             {"cores", name_of(cores)}};
    if (!run.wants(parameters)) continue;
    place_client(cores);
    std::vector<std::unique_ptr<Swarm>> swarms;
    for (const auto& subject : subjects) {
      auto& swarm = swarms.emplace_back(std::make_unique<Swarm>(*subject));
      swarm->connect(busy_connections);
      set_keys(*swarm);
    }
    take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
      run.record("multi_get", parameters, subjects[i]->name(),
                 load(*subjects[i], *swarms[i], issue, options));
    });
  }
}

}  // namespace muster::bench
