#include "outlet.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace musterd {

Outlet::Outlet(int descriptor) : descriptor_(descriptor) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0) return;
  if (S_ISSOCK(about.st_mode)) {
    is_socket_ = true;
  } else if (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    without_waiting_ = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  }
}

Outlet::~Outlet() {
  if (without_waiting_ >= 0) ::close(without_waiting_);
}

long Outlet::write_some(std::string_view text) const {
  if (!is_socket_ && without_waiting_ < 0) return 0;
  const ssize_t count =
      is_socket_ ? ::send(descriptor_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                 : ::write(without_waiting_, text.data(), text.size());
  if (count >= 0) return count;
  return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

bool Outlet::write_all(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor_, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd ready{descriptor_, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace musterd
