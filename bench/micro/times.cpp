// How long the parts of the server take that have no sockets: by Google Benchmark, whose flags it
// takes.

#include <benchmark/benchmark.h>

#include "work.h"

constexpr std::size_t keys_or_timers = 100'000;  // more than the caches hold

int main(int argc, char** argv) {
  for (const auto& work : muster::bench::all_work()) {
    benchmark::RegisterBenchmark(work.name.c_str(), [&work](benchmark::State& state) {
      const auto do_units = work.prepare(keys_or_timers);
      while (state.KeepRunningBatch(work.units)) do_units();
    });
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
