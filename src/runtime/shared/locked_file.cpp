#include "runtime/shared/locked_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/failure.h"
#include "muster/log.h"
#include "runtime/shared/file_error.h"

namespace muster::runtime {

namespace {

struct ::flock whole_file(short type) {
  struct ::flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return range;
}

std::string reason_of(int code) {
  switch (code) {
    case ELOOP: return "it is a symbolic link: name the file itself";
    case EISDIR: return "it is a directory: name a file";
    case ENOENT: return "its folder is not there: make it first";
    case ENXIO:
    case EINVAL: return "it is no regular file: name another one";
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP: return "its file system has no locks: choose a folder on another one";
    default: return std::error_code(code, std::generic_category()).message();
  }
}

FileOpened open_regular_at(int folder, const std::string& name, int flags) {
  // O_NONBLOCK: the open of a pipe would wait for its other end.
  const int all = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  base::FileHandle file;
  do {
    file = base::FileHandle(::openat(folder, name.c_str(), all, 0666));
  } while (!file && errno == EINTR);
  if (!file) return {{}, errno};
  struct ::stat status {};
  if (::fstat(file.get(), &status) != 0) return {{}, errno};
  if (S_ISDIR(status.st_mode)) return {{}, EISDIR};
  if (!S_ISREG(status.st_mode)) return {{}, EINVAL};
  return {std::move(file), 0};
}

}  // namespace

FileOpened open_regular(const std::string& path, int flags) {
  return open_regular_at(AT_FDCWD, path, flags);
}

FilePlace FilePlace::of(const std::string& path) {
  FilePlace place;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  place.name = path.substr(slash + 1);  // npos + 1 is 0
  place.folder = base::FileHandle(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.folder) place.code = errno;
  if (place.name.empty()) place.code = EISDIR;
  return place;
}

FileOpened FilePlace::open(int flags) const {
  if (code != 0) return {{}, code};
  return open_regular_at(folder.get(), name, flags);
}

bool FilePlace::names(const base::FileHandle& file) const {
  struct ::stat status {};
  if (::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return identity_of(file) == FileIdentity{status.st_dev, status.st_ino};
}

int FilePlace::remove(const base::FileHandle& file) const {
  if (!names(file)) return ENOENT;
  return ::unlinkat(folder.get(), name.c_str(), 0) == 0 ? 0 : errno;
}

std::optional<FileIdentity> identity_of(const base::FileHandle& file) {
  struct ::stat status {};
  if (::fstat(file.get(), &status) != 0) return {};
  return FileIdentity{status.st_dev, status.st_ino};
}

int lock(const base::FileHandle& file) {
  struct ::flock range = whole_file(F_WRLCK);
  while (::fcntl(file.get(), F_OFD_SETLK, &range) != 0) {
    // Both say that another one holds it.
    if (errno == EACCES) return EAGAIN;
    if (errno == EINVAL) return EOPNOTSUPP;
    if (errno != EINTR) return errno;
  }
  return 0;
}

void unlock(const base::FileHandle& file) {
  struct ::flock range = whole_file(F_UNLCK);
  ::fcntl(file.get(), F_OFD_SETLK, &range);
}

int holder_of(const base::FileHandle& file) {
  struct ::flock range = whole_file(F_WRLCK);
  if (::fcntl(file.get(), F_OFD_GETLK, &range) != 0) return errno == EINVAL ? EOPNOTSUPP : errno;
  return range.l_type == F_UNLCK ? 0 : EAGAIN;
}

std::optional<std::string> content_of(const base::FileHandle& file, std::size_t bytes_max) {
  struct ::stat status {};
  if (::fstat(file.get(), &status) != 0) return {};
  std::string bytes(std::min(bytes_max, static_cast<std::size_t>(status.st_size)), '\0');
  std::size_t count = 0;
  while (count < bytes.size()) {
    const ::ssize_t got = ::pread(file.get(), bytes.data() + count, bytes.size() - count,
                                  static_cast<::off_t>(count));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  bytes.resize(count);
  return bytes;
}

int write_at(const base::FileHandle& file, std::string_view bytes, std::size_t position) {
  while (!bytes.empty()) {
    const ::ssize_t put =
        ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<::off_t>(position));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(put));
    position += static_cast<std::size_t>(put);
  }
  return 0;
}

Error file_error(std::string_view operation, const std::string& path, std::string_view what,
                 int code) {
  Error error = base::failure(code_of_errno(code), std::string(what) + ": " + reason_of(code));
  error.operation = operation;
  error.where = path;
  error.decided_by = "client";
  return error;
}

std::string own_host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return {};
  return name;
}

}  // namespace muster::runtime
