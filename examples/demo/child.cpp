#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace demo {
namespace {

/// Between fork and exec: only what is async-signal-safe.
[[noreturn]] void become(std::vector<char*>& arguments, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(output, STDOUT_FILENO);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

Child::Child(std::string name, const std::vector<std::string>& command) : name_(std::move(name)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    std::perror("demo: pipe2");
    std::exit(1);
  }
  std::vector<std::string> copy = command;
  std::vector<char*> arguments;
  for (std::string& argument : copy) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(arguments, ends[1], parent);
  ::close(ends[1]);
  output_ = ends[0];
  if (pid_ < 0) {
    std::perror("demo: fork");
    std::exit(1);
  }
}

Child::~Child() {
  if (pid_ > 0) {
    send_signal(SIGKILL);
    wait();
  }
  if (output_ >= 0) ::close(output_);
}

std::vector<std::string> Child::read_lines() {
  char buffer[4096];
  const ssize_t count = ::read(output_, buffer, sizeof buffer);
  if (count < 0 && errno == EINTR) return {};
  if (count <= 0) {
    ::close(output_);
    output_ = -1;
    return {};
  }
  partial_.append(buffer, static_cast<std::size_t>(count));
  std::vector<std::string> lines;
  for (std::size_t end; (end = partial_.find('\n')) != std::string::npos;) {
    lines.push_back(partial_.substr(0, end));
    partial_.erase(0, end + 1);
  }
  return lines;
}

void Child::send_signal(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

void Child::stop() const {
  send_signal(SIGSTOP);
  siginfo_t halted;
  while (::waitid(P_PID, static_cast<id_t>(pid_), &halted, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
}

int Child::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace demo
