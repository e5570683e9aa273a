// Groups of Muster, their ranks simulated by this thread: to start, to join, a barrier, a
// broadcast, an all_gather; and the heartbeats of all ranks.

#include "questions.h"
#include "ranks.h"

namespace muster::bench {
namespace {

/// Ranks that can be there twice: there are not descriptors enough for twice the widest group.
constexpr int beside_max = 4096;

struct GroupCase {
  wire::Collective collective;
  std::string_view name;
  std::size_t value_bytes;
  int ranks_max;
};

/// Larger groups are not asked: all_gather moves the square of the ranks.
std::vector<GroupCase> group_cases(const Run& run) {
  const int wide = run.by_extent(16, 1024, 10'240);
  return {{wire::Collective::barrier, "barrier", 0, wide},
          {wire::Collective::broadcast, "broadcast", kibibyte, wide},
          {wire::Collective::broadcast, "broadcast", mebibyte, run.by_extent(8, 64, 1024)},
          {wire::Collective::all_gather, "all_gather", 64, run.by_extent(16, 1024, 4096)},
          {wire::Collective::all_gather, "all_gather", 4 * kibibyte, run.by_extent(8, 256, 1024)}};
}

/// From nothing to a group: connections, sessions, and then the join, which is also told alone.
void measure_start(Run& run, const Subject& subject, const Json& parameters, int count) {
  Ranks ranks(subject);
  const Json connected = ranks.connect(count);
  const Json joined = ranks.join();
  Json start;
  for (const auto& [name, value] : connected.items()) {
    start[name] = value.get<double>() + joined[name].get<double>();
  }
  start["client_share_of_wall"] = start["client_ms"].get<double>() / start["wall_ms"].get<double>();
  run.record("start", parameters, subject.name(), start);
  run.record("join", parameters, subject.name(), joined);
  ranks.leave();
}

void measure_ranks(Run& run, const Subject& subject, const Subject& echo, int count, Cores cores) {
  place_client(cores);
  const std::string server = subject.name();
  const Json of_all = {{"ranks", count}, {"cores", name_of(cores)}};
  if (!run.wants(of_all)) return;
  const auto measure_floor = [&] {
    run.record("barrier", of_all, echo.name(), FloorRanks(echo, count).barrier());
    echo.settle();
  };
  for (int round = 0; round < run.rounds(); ++round) {
    if (count > beside_max) measure_floor();
    measure_start(run, subject, of_all, count);
    subject.settle();
  }
  Ranks ranks(subject);
  ranks.connect(count);
  ranks.join();
  ranks.round(wire::Collective::barrier, {});  // the first one warms up
  for (int round = 0; round < run.rounds(); ++round) {
    if (count <= beside_max) measure_floor();
    for (const GroupCase& asked : group_cases(run)) {
      if (count > asked.ranks_max) continue;
      Json parameters = {{"ranks", count}};
      if (asked.value_bytes > 0) parameters["value_bytes"] = asked.value_bytes;
      parameters["cores"] = name_of(cores);
      Json found = ranks.round(asked.collective, std::string(asked.value_bytes, 'v'));
      if (asked.collective == wire::Collective::all_gather) {
        const double least = static_cast<double>(count) * static_cast<double>(count) *
                             static_cast<double>(asked.value_bytes);
        found["bytes_of_least"] = found["bytes_received"].get<double>() / least;
      }
      run.record(asked.name, parameters, server, found);
    }
    run.record("heartbeats", of_all, server, ranks.heartbeats());
  }
  ranks.leave();
}

}  // namespace

void measure_groups(Run& run) {
  const auto subject = run.start(Kind::muster);
  const auto echo = run.start(Kind::echo);
  const auto counts = run.by_extent<std::vector<int>>({8, 16}, {8, 64, 256, 1024},
                                                      {8, 64, 256, 1024, 4096, 10'240});
  for (const int count : counts) {
    for (const Cores cores : {Cores::one, Cores::two}) {
      measure_ranks(run, *subject, *echo, count, cores);
    }
  }
}

}  // namespace muster::bench
