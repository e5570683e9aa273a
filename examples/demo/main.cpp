// Muster's main job on real processes: see demo.h for who does what.
//
//     demo MUSTERD MUSTERCTL

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "demo.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && (arguments[0] == "--worker" || arguments[0] == "--worker-again")) {
    return demo::run_worker(arguments[2], std::atoi(arguments[1].c_str()),
                            arguments[0] == "--worker-again");
  }
  if (arguments.size() == 2 && arguments[0].rfind("--", 0) != 0) {
    return demo::run_conductor({"/proc/self/exe", arguments[0], arguments[1]});
  }
  std::fprintf(stderr, "usage: demo MUSTERD MUSTERCTL\n");
  return 2;
}
