#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/process.h"
#include "support/temporary_folder.h"

namespace muster::test {

/// The path of the program under test, from the build.
inline std::string musterd_path() {
  const char* const path = std::getenv("MUSTERD");
  REQUIRE(path != nullptr);
  return path;
}

inline Process::Options musterd_options(std::vector<std::string> flags,
                                        std::map<std::string, std::string> environment = {}) {
  Process::Options options;
  options.command = std::move(flags);
  options.command.insert(options.command.begin(), musterd_path());
  options.environment = std::move(environment);
  return options;
}

inline std::vector<std::string> with_listen(std::vector<std::string> flags) {
  if (std::find(flags.begin(), flags.end(), "--listen") != flags.end()) return flags;
  flags.insert(flags.end(), {"--listen", "127.0.0.1:0"});
  return flags;
}

/// A musterd that has said where it listens.
class Musterd : public Process {
 public:
  /// On a free port, unless `flags` say where.
  explicit Musterd(std::vector<std::string> flags,
                   std::map<std::string, std::string> environment = {})
      : Musterd(musterd_options(with_listen(std::move(flags)), std::move(environment)), 1) {}
  /// addresses_count  how many lines to wait for
  Musterd(const Options& options, int addresses_count) : Process(options) {
    const std::string mark = "musterd listening on ";
    while (addresses_count-- > 0) {
      const auto line = read_line();
      if (!line || !line->starts_with(mark)) FAIL("musterd does not listen: " << read_errors());
      addresses_.push_back(line->substr(mark.size()));
    }
  }

  const std::string& address() const { return addresses_.front(); }
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  std::vector<std::string> addresses_;
};

}  // namespace muster::test
