// In a program that links this the system gives no random bytes while MUSTER_TEST_NO_RANDOM is in
// the environment, as in a sandbox that hides its sources.

#include <fcntl.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

bool is_hidden() { return ::getenv("MUSTER_TEST_NO_RANDOM") != nullptr; }

}  // namespace

extern "C" ssize_t getrandom(void* buffer, size_t size, unsigned flags) {
  if (!is_hidden()) return ::syscall(SYS_getrandom, buffer, size, flags);
  errno = ENOSYS;
  return -1;
}

extern "C" int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  if (!is_hidden() || std::strcmp(path, "/dev/urandom") != 0) {
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  }
  errno = ENOENT;
  return -1;
}
