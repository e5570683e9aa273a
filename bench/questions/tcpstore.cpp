// What programs that use TCPStore notice of who serves them: musterd at its port for them, or the
// servers of PyTorch. Asked for by name alone.

#include <exception>
#include <set>
#include <string>
#include <utility>

#include "dialect_tcpstore.h"
#include "load.h"
#include "questions.h"

namespace muster::bench {
namespace {

using Subjects = std::vector<std::unique_ptr<Subject>>;

/// What fails of another server is told; it is asked nothing more, and the others go on.
class Attempts {
 public:
  template <class Measure>
  void operator()(Run& run, const Subject& subject, const std::string& what,
                  const Measure& measure) {
    if (failed_.count(subject.kind()) > 0) return;
    try {
      measure();
    } catch (const std::exception& failed) {
      if (subject.kind() == Kind::muster_tcpstore) throw;
      failed_.insert(subject.kind());
      run.excuse("tcpstore", subject.name() + ", " + what + ": " + failed.what());
    }
  }

 private:
  std::set<Kind> failed_;
};

Issue issuer_of(const std::string& operation, const std::string& value) {
  if (operation == "add") {
    return [](Dialect& dialect, int peer, std::string& out) {
      dialect.append_add(out, nth_key(1'000'000 + peer));
    };
  }
  if (operation == "get") {
    return [&value](Dialect& dialect, int peer, std::string& out) {
      dialect.append_get(out, nth_key(peer), value.size());
    };
  }
  return [&value](Dialect& dialect, int peer, std::string& out) {
    dialect.append_set(out, nth_key(peer), value, 0);
  };
}

void measure_command(Run& run, const Subjects& subjects, const std::string& operation,
                     int connections, int depth) {
  const Json parameters = {
      {"operation", operation}, {"connections", connections}, {"depth", depth}};
  if (!run.wants(parameters)) return;
  const std::string value(small_value_bytes, 'v');
  const Issue issue = issuer_of(operation, value);
  const auto swarms = swarms_with_keys(subjects, connections, value);
  LoadOptions options;
  options.depth = depth;
  options.duration = std::chrono::milliseconds(run.by_extent(10, 100, 300));
  take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
    run.record("tcpstore_operations", parameters, subjects[i]->name(),
               load(*subjects[i], *swarms[i], issue, options));
  });
}

void measure_waiters(Run& run, Attempts& attempt, const Subjects& subjects, int waiters) {
  const Json parameters = {{"waiters", waiters}};
  if (!run.wants(parameters)) return;
  std::vector<std::unique_ptr<Swarm>> swarms;
  for (const auto& subject : subjects) {
    swarms.push_back(std::make_unique<Swarm>(*subject));
    swarms.back()->connect(waiters + 1);
  }
  int number = 0;
  take_turns(1 + 2 * run.rounds(), subjects.size(), [&](std::size_t i) {  // the first warms up
    const std::string key = "wake-" + std::to_string(++number);
    if (swarms[i] == nullptr) return;
    const bool is_new = number <= static_cast<int>(subjects.size());
    attempt(run, *subjects[i], std::to_string(waiters) + " waiters", [&] {
      std::unique_ptr<Swarm> swarm = std::move(swarms[i]);
      const Json found = wake_all(*subjects[i], *swarm, key);
      if (!is_new) run.record("tcpstore_wake_ups", parameters, subjects[i]->name(), found);
      swarms[i] = std::move(swarm);
    });
  });
}

void measure_storm(Run& run, Attempts& attempt, const Subjects& subjects, int connections) {
  const Json parameters = {{"connections", connections}};
  if (!run.wants(parameters)) return;
  take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
    const Subject& subject = *subjects[i];
    attempt(run, subject, std::to_string(connections) + " connections", [&] {
      run.record("tcpstore_storm", parameters, subject.name(), storm(subject, connections));
    });
    subject.settle();  // the closing, too, is over before the next one's turn
  });
}

/// PyTorch 1 has no such command.
void measure_multi_set(Run& run, Attempts& attempt, const Subjects& subjects, int keys) {
  const Json parameters = {{"keys", keys}};
  if (!run.wants(parameters)) return;
  const std::string value(small_value_bytes, 'v');
  take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
    const Subject& subject = *subjects[i];
    attempt(run, subject, std::to_string(keys) + " keys", [&] {
      Swarm swarm(subject);
      swarm.connect(1);
      auto& store = dynamic_cast<TcpStoreDialect&>(swarm.dialect(0));
      if (!store.append_multi_set(swarm.out(0), keys, value)) return;
      const double before_us = subject.processor_us();
      const auto began = Clock::now();
      swarm.call(0);
      const double wall_us = microseconds_since(began);
      subject.settle();
      const double server_us = subject.processor_us() - before_us;
      run.record("tcpstore_multi_set", parameters, subject.name(),
                 {{"wall_ms", wall_us / 1e3}, {"server_ms", server_us / 1e3}});
    });
  });
}

void measure_barrier(Run& run, Attempts& attempt, const Subjects& subjects, int ranks) {
  const Json parameters = {{"ranks", ranks}};
  if (!run.wants(parameters)) return;
  int number = 0;
  take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
    attempt(run, *subjects[i], std::to_string(ranks) + " ranks", [&] {
      run.record("tcpstore_barrier", parameters, subjects[i]->name(),
                 stateless_barrier(*subjects[i], ranks, ++number));
    });
  });
}

}  // namespace

void measure_tcpstore(Run& run) {
  place_client(Cores::two);
  const Subjects subjects =
      run.start({Kind::muster_tcpstore, Kind::tcpstore, Kind::tcpstore_libuv});
  Attempts attempt;
  for (const char* operation : {"get", "set", "add"}) {
    measure_command(run, subjects, operation, 1, 1);
    measure_command(run, subjects, operation, run.by_extent(2, 64, 64), 1);
    measure_command(run, subjects, operation, run.by_extent(2, 64, 64), 32);
  }
  measure_multi_set(run, attempt, subjects, run.by_extent(64, 16'384, 16'384));
  measure_barrier(run, attempt, subjects, run.by_extent(4, 64, 256));
  measure_waiters(run, attempt, subjects, run.by_extent(8, 1024, 1024));
  measure_storm(run, attempt, subjects, run.by_extent(64, 4096, 4096));
}

}  // namespace muster::bench
