#include <stdexcept>

#include "muster/values.h"
#include "runtime/questions.h"

namespace muster::bench {
namespace {

/// How a rank learns rank 0's value.
struct SynchronizeWay {
  std::string_view subject;
  std::function<std::int64_t(std::int64_t value)> synchronize;
};

std::vector<SynchronizeWay> synchronize_ways_of(Runtime& runtime, const Asked& asked) {
  std::vector<SynchronizeWay> ways;
  StatelessProcessGroup& group = *runtime.world().group();
  if (asked.wants("muster")) {
    ways.push_back(
        {"muster", [&group](std::int64_t value) { return must(synchronize_value(group, value)); }});
  }
  Communicator* const gloo = runtime.world().communicator("cpu");
  if (gloo != nullptr && asked.wants("gloo")) {
    ways.push_back({"gloo", [gloo](std::int64_t value) {
                      must(gloo->broadcast(&value, &value, 1, DataType::int64, 0, nullptr));
                      return value;
                    }});
  }
  return ways;
}

}  // namespace

void measure_synchronize_value(const BenchServer& server, const Asked& asked) {
  constexpr int count = 200;
  constexpr int count_alone = 40;
  for (const int ranks : asked.ranks.empty() ? std::vector<int>{8, 64} : asked.ranks) {
    run_as_processes(ranks, server.pid(), [&](BenchRank& rank) {
      Runtime runtime(environment_of(rank, server.address()));
      init(runtime, asked.wants("gloo") ? cpu_communicators : "");
      const std::vector<SynchronizeWay> ways = synchronize_ways_of(runtime, asked);
      take_turns(asked.rounds, ways.size(), [&](std::size_t index) {
        const SynchronizeWay& way = ways[index];
        const auto work = [&](int round) {
          const std::int64_t value = rank.rank() == 0 ? round : -1;
          if (way.synchronize(value) != round) throw std::runtime_error("not rank 0's value");
        };
        Json found = rank.back_to_back(count, work);
        found.update(rank.alone(count_alone, work));
        if (rank.rank() == 0) record("synchronize_value", {{"ranks", ranks}}, way.subject, found);
      });
      must(runtime.shutdown());
    });
  }
}

}  // namespace muster::bench
