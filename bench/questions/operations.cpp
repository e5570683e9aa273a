// What one operation costs, on connections that are all busy: set, get and add of small values, and
// set and get of values that the caches do not hold.

#include "load.h"
#include "questions.h"

namespace muster::bench {
namespace {

/// Of values that are on their way at a time: more would measure the memory.
constexpr std::size_t in_flight_bytes_max = 64 * mebibyte;

enum class Operation { set, get, add };

struct OperationCase {
  Operation operation;
  int connections;
  int depth;
  std::size_t value_bytes;
  Cores cores;
};

std::string name_of(Operation operation) {
  switch (operation) {
    case Operation::set: return "set";
    case Operation::get: return "get";
    case Operation::add: return "add";
  }
  return "";
}

std::vector<OperationCase> operation_cases(const Run& run) {
  using Numbers = std::vector<int>;
  const auto connections =
      run.by_extent(Numbers{2}, Numbers{1, 64, 200}, Numbers{1, 8, 64, 200, 256});
  const auto sizes =
      run.by_extent<std::vector<std::size_t>>({64}, {64, mebibyte}, {64, 1024, mebibyte});
  std::vector<OperationCase> cases;
  for (const Cores cores : {Cores::one, Cores::two}) {
    for (const int count : connections) {
      for (const int depth : {1, 16}) {
        for (const Operation operation : {Operation::set, Operation::get, Operation::add}) {
          for (const std::size_t bytes : sizes) {
            const auto in_flight = static_cast<std::size_t>(count * depth) * bytes;
            if (operation == Operation::add && bytes != sizes.front()) continue;
            if (in_flight > in_flight_bytes_max) continue;
            if (run.extent() == Extent::quick && cores == Cores::two && count == 1) continue;
            cases.push_back({operation, count, depth, bytes, cores});
          }
        }
      }
    }
  }
  return cases;
}

constexpr std::size_t largest_bytes = 64 * mebibyte;  // musterd and memcached are started so

std::vector<OperationCase> large_cases(const Run& run) {
  const auto connections = run.by_extent(std::vector<int>{1}, {1, 8}, {1, 8});
  const auto sizes = run.by_extent<std::vector<std::size_t>>(
      {mebibyte}, {mebibyte, 16 * mebibyte}, {mebibyte, 16 * mebibyte, largest_bytes});
  std::vector<OperationCase> cases;
  for (const Cores cores : {Cores::one, Cores::two}) {
    for (const int count : connections) {
      for (const Operation operation : {Operation::set, Operation::get}) {
        for (const std::size_t bytes : sizes) cases.push_back({operation, count, 1, bytes, cores});
      }
    }
  }
  return cases;
}

/// Each connection has a key of its own; those of values and of numbers differ.
Issue issuer(const OperationCase& asked, const std::string& value) {
  switch (asked.operation) {
    case Operation::set:
      return [&value](Dialect& dialect, int peer, std::string& out) {
        dialect.append_set(out, nth_key(peer), value, 0);
      };
    case Operation::get:
      return [bytes = value.size()](Dialect& dialect, int peer, std::string& out) {
        dialect.append_get(out, nth_key(peer), bytes);
      };
    case Operation::add:
      return [](Dialect& dialect, int peer, std::string& out) {
        dialect.append_add(out, nth_key(1'000'000 + peer));
      };
  }
  return {};
}

/// One on each connection, not measured: memory that is new costs its first use more than the
/// copying, whichever server it is.
void pass_once(Swarm& swarm, const Issue& issue) {
  for (int peer = 0; peer < swarm.size(); ++peer) {
    issue(swarm.dialect(peer), peer, swarm.out(peer));
  }
  swarm.flush_all();
  swarm.receive(static_cast<std::size_t>(swarm.size()));
}

void measure_case(Run& run, const std::string& question, std::chrono::milliseconds duration,
                  const OperationCase& asked,
                  const std::vector<std::unique_ptr<Subject>>& subjects) {
  Json parameters = {{"operation", name_of(asked.operation)},
                     {"connections", asked.connections},
                     {"depth", asked.depth}};
  if (asked.operation != Operation::add) parameters["value_bytes"] = asked.value_bytes;
  parameters["cores"] = name_of(asked.cores);
  if (!run.wants(parameters)) return;
  place_client(asked.cores);
  const std::string value(asked.value_bytes, 'v');
  const auto issue = issuer(asked, value);
  LoadOptions options;
  options.depth = asked.depth;
  options.duration = duration;
  const auto swarms = swarms_with_keys(subjects, asked.connections, value);
  take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
    if (asked.value_bytes >= mebibyte) pass_once(*swarms[i], issue);
    const Json found = load(*subjects[i], *swarms[i], issue, options);
    run.record(question, parameters, subjects[i]->name(), found);
  });
}

}  // namespace

void measure_operations(Run& run) {
  const auto subjects = run.start(all_kinds);
  const auto duration = std::chrono::milliseconds(run.by_extent(10, 40, 150));
  for (const OperationCase& asked : operation_cases(run)) {
    measure_case(run, "operations", duration, asked, subjects);
  }
}

void measure_large_values(Run& run) {
  const auto subjects = run.start(all_kinds);
  const auto duration = std::chrono::milliseconds(run.by_extent(10, 150, 400));
  for (const OperationCase& asked : large_cases(run)) {
    measure_case(run, "large_values", duration, asked, subjects);
  }
}

}  // namespace muster::bench
