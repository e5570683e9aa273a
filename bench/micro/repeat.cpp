// Does one thing so many times, for callgrind to count: instructions.py runs it.
//
//     repeat                 what has built it, then what there is: a line each
//     repeat NAME TIMES      does it at least so often, and prints how often in fact

#include <cstdlib>
#include <iostream>

#include <gnu/libc-version.h>

#include "work.h"

/// What callgrind counts is what happens in here: neither the preparation, nor the first times,
/// when memory is not yet at its place.
[[gnu::noinline]] void muster_bench_counted(const std::function<void()>& do_units, long times) {
  for (; times > 0; --times) do_units();
}

namespace {

constexpr std::size_t keys_or_timers = 10'000;  // the counts hardly depend on it

/// Counts are compared with those of the same toolchain and no other.
void print_toolchain() {
#ifdef __clang__
  std::cout << __VERSION__;
#else
  std::cout << "g++ " << __VERSION__;
#endif
  std::cout << ", glibc " << gnu_get_libc_version() << ", " MUSTER_BENCH_BUILD "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) print_toolchain();
  for (const auto& work : muster::bench::all_work()) {
    if (argc < 3) {
      std::cout << work.name << '\n';
    } else if (work.name == argv[1]) {
      const long times = std::atol(argv[2]) / work.units + 1;
      const auto do_units = work.prepare(keys_or_timers);
      for (long left = times; left > 0; --left) do_units();
      muster_bench_counted(do_units, times);
      std::cout << times * work.units << '\n';
      return 0;
    }
  }
  return argc < 3 ? 0 : 2;
}
