// The same as calls.py by the blocking calls of C++: what those of Python are compared with.
//
//     python_calls ADDRESS RUN OPERATION PROCESSES CALLS

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "muster/process_group.h"
#include "muster/store.h"

namespace {

const std::string value(64, 'v');

struct Asked {
  std::string address;
  std::string run;
  std::string operation;
  int processes;
  int calls;
};

struct Cost {
  double wall_us = 0;
  double processor_us = 0;
};

double processor_us() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

Cost measure(const std::function<void()>& call, int calls) {
  for (int count = 0; count < std::max(10, calls / 10); ++count) call();
  const auto begun = std::chrono::steady_clock::now();
  const double before_us = processor_us();
  for (int count = 0; count < calls; ++count) call();
  const std::chrono::duration<double, std::micro> wall = std::chrono::steady_clock::now() - begun;
  return {wall.count() / calls, (processor_us() - before_us) / calls};
}

Cost measure_in(muster::Store& store, const Asked& asked, int rank) {
  const std::string key = "key" + std::to_string(rank);
  if (asked.operation == "barrier") {
    auto group =
        muster::StatelessProcessGroup::create(store, "bench", rank, asked.processes, {}).value();
    const auto barrier = [&group] { group.barrier().value(); };
    const Cost cost = measure(barrier, asked.calls);
    barrier();  // nobody goes before all have measured
    return cost;
  }
  store.set(key, value).value();
  if (asked.operation == "get") return measure([&] { store.get(key).value(); }, asked.calls);
  if (asked.operation == "set") return measure([&] { store.set(key, value).value(); }, asked.calls);
  return measure([&] { store.add(key + "n", 1).value(); }, asked.calls);
}

Cost run(const Asked& asked, int rank) {
  muster::StoreOptions options;
  options.name_space = asked.run;
  auto store = muster::Store::connect(asked.address, options).value();
  return measure_in(store, asked, rank);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// One process for each rank, each of which writes its cost into a pipe.
Cost run_all(const Asked& asked) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  for (int rank = 0; rank < asked.processes; ++rank) {
    if (::fork() != 0) continue;
    const Cost cost = run(asked, rank);
    ::_exit(::write(ends[1], &cost, sizeof(cost)) == sizeof(cost) ? 0 : 1);
  }
  std::vector<double> wall, processor;
  for (int rank = 0; rank < asked.processes; ++rank) {
    Cost cost;
    if (::read(ends[0], &cost, sizeof(cost)) != sizeof(cost)) std::abort();
    wall.push_back(cost.wall_us);
    processor.push_back(cost.processor_us);
  }
  while (::wait(nullptr) > 0) {
  }
  return {median(wall), median(processor)};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const Asked asked{argv[1], argv[2], argv[3], std::atoi(argv[4]), std::atoi(argv[5])};
  const Cost cost = asked.processes == 1 ? run(asked, 0) : run_all(asked);
  std::printf("{\"wall_us\": %.3f, \"processor_us\": %.3f}\n", cost.wall_us, cost.processor_us);
}
