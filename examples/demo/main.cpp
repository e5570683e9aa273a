// Muster's main job on real processes: see demo.h for who does what.
//
//     demo --musterd PATH

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "demo.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "--worker") {
    return demo::run_worker(arguments[2], std::atoi(arguments[1].c_str()));
  }
  if (arguments.size() == 2 && arguments[0] == "--musterd") {
    return demo::run_conductor(arguments[1], "/proc/self/exe");
  }
  std::fprintf(stderr, "usage: demo --musterd PATH\n");
  return 2;
}
