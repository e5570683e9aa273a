// Does one thing so many times, for callgrind to count: instructions.py runs it.
//
//     repeat                 lists what there is
//     repeat NAME TIMES

#include <cstdlib>
#include <iostream>

#include "work.h"

int main(int argc, char** argv) {
  for (const auto& work : muster::bench::all_work()) {
    if (argc < 3) {
      std::cout << work.name << '\n';
    } else if (work.name == argv[1]) {
      const auto do_once = work.prepare();
      for (long left = std::atol(argv[2]); left > 0; --left) do_once();
      return 0;
    }
  }
  return argc < 3 ? 0 : 2;
}
