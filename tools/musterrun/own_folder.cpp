#include "own_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

namespace musterrun {

namespace {

constexpr std::string_view beginning = "musterrun-";

std::string lock_of(const std::string& folder) { return folder + "/lock"; }

void remove_leftovers(const std::filesystem::path& place) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(place, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string path = entry->path();
    if (entry->path().filename().string().rfind(beginning, 0) != 0) continue;
    const muster::base::FileHandle lock(
        ::open(lock_of(path).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    struct stat found {};
    // Without a lock it is empty: just made, and made again then, or almost removed.
    if (!lock) ::rmdir(path.c_str());
    if (!lock || ::fstat(lock.get(), &found) != 0 || found.st_uid != ::geteuid()) continue;
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) remove_own_folder(path);
  }
}

}  // namespace

std::optional<OwnFolder> OwnFolder::make() {
  std::error_code failed;
  std::filesystem::path place = std::filesystem::temp_directory_path(failed);
  if (failed) place = "/tmp";
  remove_leftovers(place);
  for (int tries = 0; tries < 100; ++tries) {
    OwnFolder folder;
    folder.path_ = place / (std::string(beginning) + "XXXXXX");
    if (::mkdtemp(folder.path_.data()) == nullptr) return {};
    // Locked before it has the name that others look for.
    const std::string fresh = lock_of(folder.path_) + ".new";
    folder.lock_ =
        muster::base::FileHandle(::open(fresh.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!folder.lock_ && errno == ENOENT) continue;
    if (!folder.lock_) return {};
    ::flock(folder.lock_.get(), LOCK_EX);
    if (::rename(fresh.c_str(), lock_of(folder.path_).c_str()) != 0) return {};
    return folder;
  }
  return {};
}

void remove_own_folder(const std::string& path) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(path, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code ignored;
    if (entry->path() != lock_of(path)) std::filesystem::remove_all(entry->path(), ignored);
  }
  ::unlink(lock_of(path).c_str());
  ::rmdir(path.c_str());
}

}  // namespace musterrun
