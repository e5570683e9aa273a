#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "support/credential_text.h"
#include "support/temporary_folder.h"

namespace muster::test {

/// A file of a test with a client's key, which goes with it.
class CredentialFile {
 public:
  explicit CredentialFile(const std::string& text) { write(text); }

  /// As a careful writer does: another file takes its place.
  void write(const std::string& text) const {
    const std::string next = path_ + ".next";
    std::ofstream(next) << text;
    ::chmod(next.c_str(), 0600);
    if (::rename(next.c_str(), path_.c_str()) != 0) throw std::runtime_error("rename");
  }
  void set_mode(mode_t mode) const { ::chmod(path_.c_str(), mode); }

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_ = folder_ / "key";
};

/// The line of a credentials file for `id` with the key of that number.
inline std::string key_line(const std::string& id, std::uint8_t number) {
  return id + " " + auth::key_text(number) + " * all\n";
}

/// A variable of this process's environment, while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace muster::test
