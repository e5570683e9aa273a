#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace muster::test {
namespace {

using Clock = std::chrono::steady_clock;

int left_ms(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

/// The arrays that exec wants; made before the fork, since a child may not allocate.
class Strings {
 public:
  explicit Strings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (std::string& text : strings_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

Strings environment_with(const std::map<std::string, std::string>& added) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  for (const auto& [name, value] : added) entries.push_back(name + "=" + value);
  return Strings(std::move(entries));
}

struct PipeEnds {
  int ours = -1;
  int theirs = -1;
};

PipeEnds make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  return {ends[0], ends[1]};
}

}  // namespace

Process::Process(const Options& options) {
  const Strings arguments(options.command);
  const Strings environment = environment_with(options.environment);
  const PipeEnds output = make_pipe();
  const PipeEnds errors = options.take_errors ? make_pipe() : PipeEnds{};
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ == 0) {  // only what is async-signal-safe from here on
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(output.theirs, STDOUT_FILENO);
    if (options.take_errors) ::dup2(errors.theirs, STDERR_FILENO);
    if (options.errors >= 0) ::dup2(options.errors, STDERR_FILENO);
    for (const int fd : options.descriptors) ::fcntl(fd, F_SETFD, 0);
    ::execve(arguments.data()[0], arguments.data(), environment.data());
    ::_exit(127);
  }
  ::close(output.theirs);
  if (options.take_errors) ::close(errors.theirs);
  output_.fd = output.ours;
  errors_.fd = errors.ours;
  pid_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {pid_fd_, output_.fd, errors_.fd}) {
    if (fd >= 0) ::close(fd);
  }
}

bool Process::Pipe::fill(Clock::time_point deadline) {
  pollfd ready{fd, POLLIN, 0};
  if (fd < 0 || ::poll(&ready, 1, left_ms(deadline)) <= 0) return false;
  char bytes[4096];
  const ssize_t count = ::read(fd, bytes, sizeof(bytes));
  if (count <= 0) return false;
  buffered.append(bytes, static_cast<std::size_t>(count));
  return true;
}

std::string Process::Pipe::read_all(Timeout timeout) {
  const auto deadline = Clock::now() + timeout;
  while (fill(deadline)) {
  }
  return std::exchange(buffered, {});
}

std::optional<std::string> Process::read_line(Timeout timeout) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    const std::size_t end = output_.buffered.find('\n');
    if (end != std::string::npos) {
      std::string line = output_.buffered.substr(0, end);
      output_.buffered.erase(0, end + 1);
      return line;
    }
    if (!output_.fill(deadline)) return std::nullopt;
  }
}

std::string Process::read_output(Timeout timeout) { return output_.read_all(timeout); }

std::string Process::read_errors(Timeout timeout) { return errors_.read_all(timeout); }

void Process::send_signal(int signal) {
  if (pid_ > 0) ::kill(pid_, signal);
}

void Process::stop() {
  if (pid_ <= 0) return;
  send_signal(SIGSTOP);
  // The kernel reports a process as stopped when the last of its threads has come to a halt.
  siginfo_t halted;
  while (::waitid(P_PID, static_cast<id_t>(pid_), &halted, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
}

Ending Process::wait(Timeout timeout) {
  Ending ending;
  pollfd ready{pid_fd_, POLLIN, 0};
  const auto deadline = Clock::now() + timeout;
  int status = 0;
  if (pid_ <= 0 || ::poll(&ready, 1, left_ms(deadline)) <= 0 ||
      ::waitpid(pid_, &status, WNOHANG) != pid_) {
    ending.has_ended = false;
    return ending;
  }
  pid_ = -1;
  if (WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  return ending;
}

}  // namespace muster::test
