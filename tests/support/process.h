#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::test {

/// How a child process ended.
struct Ending {
  int exit_code = -1;  ///< -1: by a signal, or not at all
  int signal = 0;      ///< 0: by itself, or not at all
  bool has_ended = true;
};

/// A child process of a test. It is killed and reaped when this object goes, and the kernel kills
/// it when the thread that started it ends, so that nothing is left running.
class Process {
 public:
  struct Options {
    std::vector<std::string> command;                ///< the program's path and its arguments
    std::map<std::string, std::string> environment;  ///< added to that of the test
    bool take_errors = true;       ///< its standard error is read by `read_errors`
    int errors = -1;               ///< else where it goes; -1: with those of the test
    std::vector<int> descriptors;  ///< that it inherits, under the same numbers
  };
  using Timeout = std::chrono::milliseconds;
  static constexpr Timeout patience{20'000};

  /// Throws std::runtime_error when the program cannot be started.
  explicit Process(const Options& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  /// The next line of its standard output, without its end; nothing when the output has ended or
  /// the time is over.
  std::optional<std::string> read_line(Timeout timeout = patience);
  /// What is left of its standard output and error until they end.
  std::string read_output(Timeout timeout = patience);
  std::string read_errors(Timeout timeout = patience);

  void send_signal(int signal);
  /// Sends SIGSTOP and waits until every thread of it stands still; SIGCONT lets it go on.
  void stop();
  /// Waits for its end.
  Ending wait(Timeout timeout = patience);

 private:
  struct Pipe {
    int fd = -1;
    std::string buffered;
    bool fill(std::chrono::steady_clock::time_point deadline);
    std::string read_all(Timeout timeout);
  };

  pid_t pid_ = -1;
  int pid_fd_ = -1;
  Pipe output_;
  Pipe errors_;
};

}  // namespace muster::test
