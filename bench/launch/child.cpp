// A rank that only reports: what starts it does all the rest of the work.
//
// child FIFO [HOLD]   writes "ATTEMPT RANK\n" into FIFO and ends. With HOLD it stays, but rank 0 of
//                     attempt 0, which fails when something can be read from HOLD.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

int number_of(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int rank = number_of("RANK");
  const int attempt = number_of("TORCHELASTIC_RESTART_COUNT");
  const int fifo = ::open(argv[1], O_WRONLY);
  char text[64];
  const int length = std::snprintf(text, sizeof text, "%d %d\n", attempt, rank);
  if (fifo < 0 || ::write(fifo, text, static_cast<std::size_t>(length)) != length) return 1;
  ::close(fifo);
  if (argc < 3) return 0;
  if (attempt > 0) return 0;
  if (rank > 0) return ::pause();
  const int hold = ::open(argv[2], O_RDONLY);
  return hold >= 0 && ::read(hold, text, 1) == 1 ? 1 : 3;
}
