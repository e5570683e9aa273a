#include "server/http/front/own_descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace muster::server::http {
namespace {

/// For kernels before 5.9.
int close_listed_from(int first) {
  DIR* const folder = ::opendir("/proc/thread-self/fd");
  if (folder == nullptr) return errno;
  std::vector<int> open;
  while (const dirent* const entry = ::readdir(folder)) {
    const int descriptor = std::atoi(entry->d_name);
    if (descriptor >= first && descriptor != ::dirfd(folder)) open.push_back(descriptor);
  }
  ::closedir(folder);
  for (const int descriptor : open) ::close(descriptor);
  return 0;
}

/// The profiles of containers mostly forbid `unshare`, since it can do much else; this they allow.
int take_own_table() {
#ifdef SYS_close_range
  constexpr unsigned close_nothing_from = ~0U;
  constexpr unsigned flag_unshare = 1U << 1;
  if (::syscall(SYS_close_range, close_nothing_from, ~0U, flag_unshare) == 0) return 0;
#endif
  return ::unshare(CLONE_FILES) == 0 ? 0 : errno;
}

int close_all_from(int first) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return 0;
#endif
  return close_listed_from(first);
}

}  // namespace

int take_own_descriptors(int kept) {
  const int refusal = take_own_table();
  if (refusal != 0) return refusal;
  if (kept != kept_as && ::dup3(kept, kept_as, O_CLOEXEC) < 0) return errno;
  const int error = close_all_from(kept_as + 1);
  if (error != 0) return error;
  // What is printed by mistake must not go to whoever has a socket of that number.
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return errno;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
    if (::dup2(nothing, stream) < 0) return errno;
  ::close(nothing);
  return 0;
}

}  // namespace muster::server::http
