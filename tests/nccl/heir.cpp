#include "nccl/heir.h"

#include <poll.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

namespace muster::test {
namespace {

constexpr const char* heir_mark = "--heir";

}  // namespace

bool leave_heir() {
  std::string program = "/proc/self/exe";
  std::string marked = heir_mark;
  std::array<char*, 3> arguments{program.data(), marked.data(), nullptr};
  pid_t child = -1;
  return ::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) == 0;
}

int run_as_heir(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], heir_mark) != 0) return -1;
  ::alarm(60);                          // whatever happens, it does not stay
  pollfd printed{STDOUT_FILENO, 0, 0};  // an error comes when its reader is gone
  return ::poll(&printed, 1, -1) == 1 ? 0 : 1;
}

}  // namespace muster::test
