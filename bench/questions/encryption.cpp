// What TLS costs: operations, a barrier, to connect and join, and memory, each beside the same
// without TLS in the same round. Asked for by name alone.

#include "encryption.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "load.h"
#include "questions.h"
#include "ranks.h"
#include "swarm.h"

namespace muster::bench {
namespace {

constexpr std::size_t record_value_bytes = 100;

using Subjects = std::vector<std::unique_ptr<Subject>>;

/// Muster, redis and etcd, each in clear and encrypted.
Subjects start_pairs(const Run& run) {
  Subjects subjects;
  for (const Kind kind : {Kind::muster, Kind::redis, Kind::etcd}) {
    if (!run.has(kind)) continue;
    for (const Wire wire : {Wire::clear, Wire::encrypted}) {
      subjects.push_back(run.start(kind, {}, wire));
    }
  }
  return subjects;
}

void measure_operation(Run& run, const Subjects& subjects, const std::string& operation,
                       int connections, int depth) {
  const Json parameters = {{"operation", operation},
                           {"connections", connections},
                           {"depth", depth},
                           {"value_bytes", small_value_bytes}};
  if (!run.wants(parameters)) return;
  const std::string value(small_value_bytes, 'v');
  const auto issue = [&](Dialect& dialect, int peer, std::string& out) {
    if (operation == "set") {
      dialect.append_set(out, nth_key(peer), value, 0);
    } else {
      dialect.append_get(out, nth_key(peer), value.size());
    }
  };
  const auto swarms = swarms_with_keys(subjects, connections, value);
  LoadOptions options;
  options.depth = depth;
  options.duration = std::chrono::milliseconds(run.by_extent(10, 100, 300));
  take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
    run.record("encrypted_operations", parameters, subjects[i]->name(),
               load(*subjects[i], *swarms[i], issue, options));
  });
}

void measure_barrier(Run& run, int count) {
  const Json parameters = {{"ranks", count}};
  if (!run.wants(parameters)) return;
  Subjects subjects;
  std::vector<std::unique_ptr<Ranks>> ranks;
  for (const Wire wire : {Wire::clear, Wire::encrypted}) {
    subjects.push_back(run.start(Kind::muster, {}, wire));
    ranks.push_back(std::make_unique<Ranks>(*subjects.back()));
    ranks.back()->connect(count);
    ranks.back()->join();
    ranks.back()->round(wire::Collective::barrier, {});  // warms up
  }
  take_turns(3 * run.rounds(), subjects.size(), [&](std::size_t i) {
    run.record("encrypted_barrier", parameters, subjects[i]->name(),
               ranks[i]->round(wire::Collective::barrier, {}));
  });
}

/// From nothing to a group.
void measure_beginning(Run& run, int count) {
  const Json parameters = {{"ranks", count}};
  if (!run.wants(parameters)) return;
  for (int round = 0; round < run.rounds(); ++round) {
    for (const Wire wire : {Wire::clear, Wire::encrypted}) {
      const auto subject = run.start(Kind::muster, {}, wire);
      Ranks ranks(*subject);
      Json found = ranks.connect(count);
      const Json joined = ranks.join();
      for (const char* name : {"wall_ms", "server_ms", "client_ms"}) {
        found[name] = found[name].get<double>() + joined[name].get<double>();
      }
      run.record("encrypted_start", parameters, subject->name(), found);
      ranks.leave();
    }
  }
}

void measure_sessions(Run& run, int count) {
  const Json parameters = {{"of", "idle connections"}, {"count", count}};
  if (!run.wants(parameters)) return;
  for (const auto& subject : start_pairs(run)) {
    Swarm swarm(*subject);
    swarm.connect(1, 1, Swarm::Greeting::answered);
    subject->settle();
    const double before = subject->resident_bytes();
    swarm.connect(count, 128, Swarm::Greeting::answered);
    subject->settle();
    run.record("encrypted_memory", parameters, subject->name(),
               {{"bytes_per_connection", (subject->resident_bytes() - before) / count}});
  }
}

/// What OpenSSL takes for a record, of a server: one after the other of each connection, as in a
/// barrier.
void measure_records(Run& run, int count) {
  const Json parameters = {{"connections", count}, {"value_bytes", record_value_bytes}};
  if (!run.wants(parameters)) return;
  const std::vector<Ends> all = make_ends(count);
  const std::string value(record_value_bytes, 'v');
  std::vector<std::string> records(all.size());
  std::array<char, net::tls::record_bytes_max> plain;
  std::string answer;
  const int turns = std::max(1, run.by_extent(64, 4096, 20'000) / count);
  const auto time = [&](const auto& each) {
    const double before_us = own_processor_us();
    for (std::size_t index = 0; index < all.size(); ++index) each(all[index], records[index]);
    return (own_processor_us() - before_us) * 1e3 / count;
  };
  for (int round = 0; round < run.rounds(); ++round) {
    double read_ns = 0;
    double write_ns = 0;
    for (int turn = 0; turn < turns; ++turn) {
      for (std::size_t index = 0; index < all.size(); ++index) {
        records[index].clear();
        all[index].client->write(value, records[index]);
      }
      read_ns += time([&](const Ends& ends, const std::string& record) {
        ends.server->read(record, plain.data(), plain.size(), answer);
      });
      for (std::string& record : records) record.clear();
      write_ns +=
          time([&](const Ends& ends, std::string& record) { ends.server->write(value, record); });
      for (std::size_t index = 0; index < all.size(); ++index)
        all[index].client->read(records[index], plain.data(), plain.size(), answer);
    }
    run.record("encrypted_records", parameters, "OpenSSL",
               {{"read_ns", read_ns / turns}, {"write_ns", write_ns / turns}});
  }
}

}  // namespace

void measure_encryption(Run& run) {
  place_client(Cores::two);
  {
    const Subjects subjects = start_pairs(run);
    for (const char* operation : {"get", "set"}) {
      for (const int depth : {1, 16}) {
        measure_operation(run, subjects, operation, run.by_extent(2, 64, 64), depth);
      }
    }
  }
  measure_barrier(run, run.by_extent(8, 1024, 1024));
  measure_beginning(run, run.by_extent(16, 1024, 10'240));
  for (const int count : {64, run.by_extent(128, 1024, 1024)}) measure_records(run, count);
  measure_sessions(run, run.by_extent(64, 2048, 4096));
}

}  // namespace muster::bench
