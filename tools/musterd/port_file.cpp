#include "port_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace musterd {

bool PortFile::write(const std::string& path, const std::string& text) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  folder_ = muster::base::FileHandle(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) return false;
  const std::string name = path.substr(slash + 1);  // npos + 1 is 0
  const std::string fresh = name + ".new";
  ::unlinkat(folder_.get(), fresh.c_str(), 0);  // of one that was killed while it wrote
  file_ = muster::base::FileHandle(
      ::openat(folder_.get(), fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_) return false;
  const ssize_t count = ::write(file_.get(), text.data(), text.size());
  if (count != static_cast<ssize_t>(text.size())) {
    const int code = count < 0 ? errno : ENOSPC;
    ::unlinkat(folder_.get(), fresh.c_str(), 0);
    errno = code;
    return false;
  }
  if (::renameat(folder_.get(), fresh.c_str(), folder_.get(), name.c_str()) != 0) return false;
  name_ = name;
  return true;
}

PortFile::~PortFile() {
  struct stat own {};
  struct stat named {};
  if (name_.empty() || ::fstat(file_.get(), &own) != 0) return;
  if (::fstatat(folder_.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (named.st_dev == own.st_dev && named.st_ino == own.st_ino)
    ::unlinkat(folder_.get(), name_.c_str(), 0);
}

}  // namespace musterd
