#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "muster/server.h"
#include "support/server.h"
#include "support/temporary_folder.h"
#include "support/tls_client.h"

namespace muster::test {

/// Keys as they stand in a file, which everybody knows.
inline const std::string trainer_key = "ZXhhbXBsZSAxLCBldmVyeWJvZHkga25vd3MgdGhpcy4=";
inline const std::string evaluator_key = "ZXhhbXBsZSAyLCBldmVyeWJvZHkga25vd3MgdGhpcy4=";
inline const std::string other_key = "ZXhhbXBsZSAzLCBldmVyeWJvZHkga25vd3MgdGhpcy4=";

/// A credentials file in a folder of its own, which goes with it.
class CredentialsFile {
 public:
  explicit CredentialsFile(const std::string& text) { write(text); }

  std::string path() const { return folder_ / "credentials"; }
  std::string folder() const { return folder_.path(); }
  /// It takes the place of the older one.
  void write(const std::string& text, mode_t mode = 0600) const {
    const std::string fresh = path() + ".new";
    std::ofstream(fresh) << text;
    REQUIRE(::chmod(fresh.c_str(), mode) == 0);
    std::filesystem::rename(fresh, path());
  }

 private:
  TemporaryFolder folder_;
};

/// What a server has said.
class HeardLog {
 public:
  Logger logger() {
    return [this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
    };
  }
  bool has(std::string_view part) const { return count(part) > 0; }
  std::ptrdiff_t count(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    return std::count_if(lines_.begin(), lines_.end(),
                         [part](const std::string& line) { return line.find(part) != line.npos; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// What a client is told that asks for that role in that namespace.
inline wire::ClientHello hello_for(std::string name_space, wire::Role role = wire::Role::client) {
  wire::ClientHello hello;
  hello.name_space = std::move(name_space);
  hello.role = role;
  return hello;
}

}  // namespace muster::test
