#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "net/failure.h"
#include "net/listening.h"

// A Unix socket with a path leaves its file behind when its server dies, and the next one cannot
// bind there. Whether it may be replaced is asked by connecting. Two servers that ask at the same
// time must not replace each other's fresh socket, so the folder is locked from the question to the
// answer.

namespace muster::net {
namespace {

constexpr int lock_tries = 100;
constexpr auto lock_pause = std::chrono::milliseconds(10);

Error unix_failure(const SocketAddress& address, ErrorCode code, std::string detail) {
  Error error = failure(code, std::move(detail));
  error.where = to_string(address);
  return error;
}

Error unix_failure(const SocketAddress& address, int number, const char* during) {
  const bool is_denied = number == EACCES || number == EPERM || number == EROFS;
  std::string detail = std::string(during) + ": " + text_of_errno(number);
  if (is_denied) detail += "; choose a path that this user may make";
  return unix_failure(address, is_denied ? ErrorCode::permission_denied : ErrorCode::unavailable,
                      std::move(detail));
}

std::string folder_of(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  return folder.empty() ? "." : folder;
}

/// Held while it lives. Without a lock the question is asked all the same: some file systems
/// have none.
UniqueFd lock_folder_of(const std::string& path) {
  UniqueFd fd(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int tries = 0; fd && tries < lock_tries; ++tries) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
    std::this_thread::sleep_for(lock_pause);
  }
  return fd;
}

UniqueFd unix_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// For what is removed from it: the path may lead to another folder by then.
UniqueFd open_folder_of(const std::string& path) {
  return UniqueFd(::open(folder_of(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/// Removes what a dead server has left.
Result<void> clear_stale(const SocketAddress& address) {
  const std::string path = address.host();
  const UniqueFd folder = open_folder_of(path);
  const std::string name = path.substr(path.rfind('/') + 1);
  struct stat status {};
  if (::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) {
    return unix_failure(address, ErrorCode::address_in_use, "there is a file that is no socket");
  }
  const UniqueFd probe = unix_socket();
  if (!probe) return unix_failure(address, errno, "making a socket");
  const bool answered = ::connect(probe.get(), address.data(), address.size()) == 0;
  if (answered || errno != ECONNREFUSED) {
    return unix_failure(address, ErrorCode::address_in_use,
                        answered ? "somebody listens there" : text_of_errno(errno));
  }
  struct stat now {};
  const bool is_same = ::fstatat(folder.get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
                       now.st_dev == status.st_dev && now.st_ino == status.st_ino;
  if (is_same) ::unlinkat(folder.get(), name.c_str(), 0);
  return {};
}

}  // namespace

SocketFile::SocketFile(const std::string& path) {
  if (path.empty()) return;
  struct stat status {};
  folder_ = open_folder_of(path);
  name_ = path.substr(path.rfind('/') + 1);
  if (::fstatat(folder_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) name_.clear();
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

SocketFile::SocketFile(SocketFile&& other) noexcept { *this = std::move(other); }

SocketFile& SocketFile::operator=(SocketFile&& other) noexcept {
  if (this == &other) return *this;
  remove();
  folder_ = std::move(other.folder_);
  name_ = std::exchange(other.name_, {});
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

void SocketFile::remove() {
  struct stat status {};
  const bool is_ours = !name_.empty() &&
                       ::fstatat(folder_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                       status.st_dev == device_ && status.st_ino == inode_;
  if (is_ours) ::unlinkat(folder_.get(), name_.c_str(), 0);
  name_.clear();
}

Result<Listening> listen_unix(const SocketAddress& address, int backlog) {
  const bool is_abstract = address.host().front() == '@';
  const std::string path = is_abstract ? "" : address.host();
  const UniqueFd lock = is_abstract ? UniqueFd() : lock_folder_of(path);
  Result<void> cleared = is_abstract ? Result<void>() : clear_stale(address);
  if (!cleared) return std::move(cleared).error();
  UniqueFd fd = unix_socket();
  if (!fd) return unix_failure(address, errno, "making a socket");
  if (::bind(fd.get(), address.data(), address.size()) != 0) {
    if (errno == EADDRINUSE) {
      return unix_failure(address, ErrorCode::address_in_use, "somebody listens there");
    }
    return unix_failure(address, errno, "binding");
  }
  SocketFile file(path);
  if (::listen(fd.get(), backlog) != 0) return unix_failure(address, errno, "listening");
  return Listening(std::move(fd), std::move(file), Listening::Options::inherited);
}

}  // namespace muster::net
