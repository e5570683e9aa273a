#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace demo {

/// A child process with its standard output on a pipe. It dies with its parent, and with this.
class Child {
 public:
  Child(std::string name, const std::vector<std::string>& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  int output() const { return output_; }
  bool output_open() const { return output_ >= 0; }

  /// Reads what is there; returns the whole lines.
  std::vector<std::string> read_lines();

  void send_signal(int signal) const;
  /// Sends SIGSTOP and waits until every thread of it stands still.
  void stop() const;

  /// Waits for its end.
  ///
  /// returns  the exit status, or -signal
  int wait();

 private:
  std::string name_;
  pid_t pid_ = -1;
  int output_ = -1;
  std::string partial_;
};

}  // namespace demo
