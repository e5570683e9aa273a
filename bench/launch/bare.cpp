// What a launcher cannot do without: fork and exec, for each rank, and a wait for all.
//
// bare COUNT PROGRAM ARGUMENTS...

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = std::atoi(argv[1]);
  for (int rank = 0; rank < count; ++rank) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    const pid_t pid = ::fork();
    if (pid < 0) return 1;
    if (pid == 0) {
      ::execv(argv[2], argv + 2);
      ::_exit(127);
    }
  }
  int failed = 0;
  int status = 0;
  while (::wait(&status) > 0) failed += status != 0 ? 1 : 0;
  return failed == 0 ? 0 : 1;
}
