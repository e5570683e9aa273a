#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.h"

namespace demo {

/// A promise that was not kept; it ends the demo.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool kept, const std::string& promise) {
  if (!kept) throw Broken(promise);
}

/// What a process has reported.
struct Fact {
  int process = 0;
  std::string value;
};

/// The processes of the demo and what they have reported. All of it must be done by a time.
class Cast {
 public:
  explicit Cast(std::int64_t until_us) : until_us_(until_us) {}

  /// Starts `command` in place of one that may have been there.
  void start(int process, const std::vector<std::string>& command);

  /// A process; it must have been started.
  Child& at(int process) { return *children_.at(process); }
  void kill(int process);

  /// Waits until a fact of this name was reported so many times; throws Broken when a process says
  /// that a promise is not kept, ends too early, or the time is over.
  const std::vector<Fact>& await(const std::string& name, std::size_t count);

  /// What was reported so far.
  const std::vector<Fact>& facts(const std::string& name) { return facts_[name]; }
  std::int64_t sum(const std::string& name);
  std::int64_t max(const std::string& name);

  /// Waits for the end of every process that was not killed.
  void await_ends();

  /// Milliseconds until all must be done.
  int left_ms() const;

 private:
  void poll_outputs();
  void take_line(int process, const std::string& line);

  std::int64_t until_us_;
  std::map<int, std::unique_ptr<Child>> children_;
  std::map<std::string, std::vector<Fact>> facts_;
};

/// Runs a command to its end and gives what it printed; throws Broken unless it exits with 0.
std::string output_of(const std::vector<std::string>& command);

}  // namespace demo
