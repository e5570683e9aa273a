// How much memory a key takes, a connection that does nothing, and a rank that waits: what the
// process has grown by.

#include "load.h"
#include "questions.h"
#include "ranks.h"

namespace muster::bench {
namespace {

constexpr std::int64_t an_hour_ms = 3'600'000;

/// Writes so many keys, sixteen at a time.
void write_keys(Swarm& swarm, int count) {
  constexpr int batch = 16;
  const std::string value(small_value_bytes, 'v');
  for (int key = 0; key < count;) {
    int asked = 0;
    for (; asked < batch && key < count; ++asked, ++key) {
      swarm.dialect(0).append_set(swarm.out(0), nth_key(key), value, an_hour_ms);
    }
    swarm.call(0, static_cast<std::size_t>(asked));
  }
}

/// A fresh server each time: what was freed before is not given back to the system.
Json of_keys(const Subject& subject, int count) {
  Swarm swarm(subject);
  swarm.connect(1);
  write_keys(swarm, 16);  // what the first ones need
  subject.settle();
  const double before = subject.resident_bytes();
  write_keys(swarm, count);
  subject.settle();
  return {{"bytes_per_key", (subject.resident_bytes() - before) / count}};
}

Json of_connections(const Subject& subject, int count) {
  Swarm swarm(subject);
  swarm.connect(1, 1, Swarm::Greeting::answered);
  subject.settle();
  const double before = subject.resident_bytes();
  swarm.connect(count, 128, Swarm::Greeting::answered);
  subject.settle();
  return {{"bytes_per_connection", (subject.resident_bytes() - before) / count}};
}

/// In one group, all but one of them in a barrier.
Json of_ranks(const Subject& subject, int count) {
  Ranks few(subject);
  few.connect(2);
  few.join();
  few.barrier_around([] {});
  subject.settle();
  const double before = subject.resident_bytes();
  Ranks ranks(subject);
  ranks.connect(count);
  ranks.join();
  double during = 0;
  ranks.barrier_around([&] { during = subject.resident_bytes(); });
  return {{"bytes_per_connection", (during - before) / count}};
}

}  // namespace

void measure_memory(Run& run) {
  place_client(Cores::two);
  const int keys = run.by_extent(1000, 100'000, 100'000);
  const int connections = run.by_extent(100, 4096, 4096);
  const Json keys_held = {{"of", "keys"}, {"count", keys}, {"value_bytes", small_value_bytes}};
  const Json connections_held = {{"of", "idle connections"}, {"count", connections}};
  const Json ranks_held = {{"of", "ranks that wait in a barrier"}, {"count", connections}};
  for (int round = 0; round < run.by_extent(1, 1, 5); ++round) {
    for (const Kind kind : all_kinds) {
      if (!run.has(kind)) continue;
      if (kind != Kind::echo && run.wants(keys_held)) {
        const auto subject = run.start(kind);
        run.record("memory", keys_held, subject->name(), of_keys(*subject, keys));
      }
      if (!run.wants(connections_held)) continue;
      const auto subject = run.start(kind);
      run.record("memory", connections_held, subject->name(),
                 of_connections(*subject, connections));
    }
    if (!run.wants(ranks_held)) continue;
    const auto subject = run.start(Kind::muster);
    run.record("memory", ranks_held, subject->name(), of_ranks(*subject, connections));
  }
}

}  // namespace muster::bench
