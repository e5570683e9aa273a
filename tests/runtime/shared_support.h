#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <doctest/doctest.h>

// Folders of tests of what ranks share, and what is left in them.

namespace muster::test {

/// A folder of its own, removed at the end.
class OwnFolder {
 public:
  OwnFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "shared_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~OwnFolder() { std::filesystem::remove_all(path_); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::set<std::string> entries_of(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

/// Our names in a folder that no process holds; other tests may be at work there at the same time.
inline std::set<std::string> leftovers_in(const std::string& folder) {
  std::set<std::string> names;
  for (const std::string& name : entries_of(folder)) {
    if (name.rfind("muster-", 0) != 0) continue;
    const int file = ::open((folder + "/" + name).c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) continue;
    if (::flock(file, LOCK_SH | LOCK_NB) == 0) names.insert(name);
    ::close(file);
  }
  return names;
}

/// Files of that kind that this process has open, whether they have a name or not.
inline int own_open_files() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.find("/muster-") != std::string::npos) ++count;
  }
  return count;
}

/// Mappings of them, which keep their memory.
inline int own_mappings() {
  int count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/muster-") != std::string::npos) ++count;
  return count;
}

}  // namespace muster::test
