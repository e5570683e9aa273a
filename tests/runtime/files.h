#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "muster/environment.h"
#include "support/process.h"

// Files of tests, and processes that share them.

namespace muster::test {

/// A new folder, removed with all that it has.
class TestFolder {
 public:
  TestFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "muster-XXXXXX").string();
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.insert(entry.path().filename().string());
    return found;
  }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

/// `runtime_file_process` with these words.
inline std::unique_ptr<Process> start_file_process(const std::vector<std::string>& words,
                                                   const Environment::Variables& environment = {}) {
  Process::Options options;
  options.command = {std::getenv("RUNTIME_FILE_PROCESS")};
  options.command.insert(options.command.end(), words.begin(), words.end());
  for (const auto& [name, value] : environment) options.environment[name] = value;
  options.take_errors = false;
  return std::make_unique<Process>(options);
}

}  // namespace muster::test
