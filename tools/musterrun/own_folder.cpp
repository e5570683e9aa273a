#include "own_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

// Other users may write into the place where these folders are: they can give one of our names to a
// link, or to a folder of this user that is none of ours, and exchange one for another at any time.
// So a folder is opened without following a link, what is opened is judged, and all that is removed
// is removed through that descriptor. Ours are this user's alone (mode 0700), so nobody else has
// put the lock into them, and nothing but musterrun calls a file as it calls its lock.

namespace musterrun {

namespace {

using muster::base::FileHandle;

constexpr std::string_view beginning = "musterrun-";
constexpr std::string_view drawn = "XXXXXX";
constexpr const char* lock_name = "musterrun.lock";
constexpr const char* fresh_lock_name = "musterrun.lock.new";

FileHandle open_folder(int place, const char* name) {
  return FileHandle(::openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Of this user alone.
bool is_private(const FileHandle& folder) {
  struct stat found {};
  return ::fstat(folder.get(), &found) == 0 && found.st_uid == ::geteuid() &&
         (found.st_mode & 0777) == 0700;
}

bool is_lock(const FileHandle& file) {
  struct stat found {};
  return ::fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode) &&
         found.st_uid == ::geteuid() && found.st_nlink == 1;
}

template <class Each>
void for_each_entry(int folder, const Each& each) {
  const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(own < 0 ? nullptr : ::fdopendir(own),
                                                    &::closedir);
  if (!entries && own >= 0) ::close(own);
  while (const dirent* const entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") each(entry->d_name);
  }
}

bool is_empty(int folder) {
  bool found = false;
  for_each_entry(folder, [&](const char*) { found = true; });
  return !found;
}

void remove_entry(int folder, const char* name) {
  if (::unlinkat(folder, name, 0) == 0) return;
  const FileHandle below = open_folder(folder, name);
  if (!below) return;
  for_each_entry(below.get(), [&](const char* each) { remove_entry(below.get(), each); });
  ::unlinkat(folder, name, AT_REMOVEDIR);
}

void remove_contents(int folder) {
  for_each_entry(folder, [&](const char* name) {
    if (std::string_view(name) != lock_name) remove_entry(folder, name);
  });
  ::unlinkat(folder, lock_name, 0);
}

/// Only if it is empty, and the name is still of that folder.
void remove_folder(int place, const char* name, const FileHandle& folder) {
  struct stat opened {};
  struct stat named {};
  if (::fstat(folder.get(), &opened) != 0) return;
  if (::fstatat(place, name, &named, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (named.st_dev != opened.st_dev || named.st_ino != opened.st_ino) return;
  ::unlinkat(place, name, AT_REMOVEDIR);
}

void remove_leftover(int place, const char* name) {
  const std::string_view all = name;
  if (all.size() != beginning.size() + drawn.size() || all.rfind(beginning, 0) != 0) return;
  const FileHandle folder = open_folder(place, name);
  if (!folder || !is_private(folder)) return;
  const FileHandle lock(
      ::openat(folder.get(), lock_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  // Without a lock it is empty: just made, and made again then, or almost removed.
  if (!lock) return remove_folder(place, name, folder);
  if (!is_lock(lock) || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  remove_contents(folder.get());
  remove_folder(place, name, folder);
}

}  // namespace

std::string OwnFolder::usual_place() {
  std::error_code failed;
  std::filesystem::path place = std::filesystem::temp_directory_path(failed);
  if (!failed) place = std::filesystem::absolute(place, failed);
  return failed ? "/tmp" : place.string();
}

std::optional<OwnFolder> OwnFolder::make(const std::string& place) {
  OwnFolder folder;
  folder.place_ = FileHandle(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.place_)
    for_each_entry(folder.place_.get(),
                   [&](const char* name) { remove_leftover(folder.place_.get(), name); });
  else  // it may be one in which files can be made, and not listed
    folder.place_ = FileHandle(::open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int tries = 0; folder.place_ && tries < 100; ++tries) {
    if (folder.create(place)) return folder;
    if (errno != EAGAIN) break;
  }
  return {};
}

/// errno  EAGAIN: another one was quicker, or has put something else there
bool OwnFolder::create(const std::string& place) {
  path_ = place + "/" + std::string(beginning) + std::string(drawn);
  if (::mkdtemp(path_.data()) == nullptr) return false;
  folder_ = open_folder(place_.get(), name());
  if (!folder_ || !is_private(folder_) || !is_empty(folder_.get())) {
    errno = EAGAIN;
    return false;
  }
  // Locked before it has the name that others look for.
  lock_ = FileHandle(::openat(folder_.get(), fresh_lock_name,
                              O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_) {
    if (errno == ENOENT) errno = EAGAIN;  // it was taken for one that was left
    return false;
  }
  ::flock(lock_.get(), LOCK_EX);
  return ::renameat(folder_.get(), fresh_lock_name, folder_.get(), lock_name) == 0;
}

void OwnFolder::remove() const {
  remove_contents(folder_.get());
  remove_folder(place_.get(), name(), folder_);
}

}  // namespace musterrun
