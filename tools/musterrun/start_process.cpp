#include "start_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace musterrun {

namespace {

rlimit first_descriptor_limit{};
bool knows_descriptor_limit = false;

constexpr std::string_view host_pid_variable = "MUSTER_HOST_PID=";

struct Strings {
  std::string bytes;
  std::vector<char*> arguments;
  std::vector<char*> variables;
  char host_pid[64] = {};  ///< a variable that the child fills in
};

/// In the child, which alone can know both of its pids: "NAME=PID:PID_ON_THE_HOST".
void tell_host_pid(char* text, int outer_proc) {
  char digits[16];
  int count = 0;
  for (pid_t rest = ::getpid(); rest > 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  text += host_pid_variable.copy(text, host_pid_variable.size());
  while (count > 0) *text++ = digits[--count];
  *text++ = ':';
  const ssize_t bytes = ::readlinkat(outer_proc, "self", text, 16);
  text[bytes > 0 ? bytes : 0] = '\0';
}

bool read_strings(int file, const Order& order, Strings& strings) {
  struct stat found {};
  if (::fstat(file, &found) != 0) return false;
  strings.bytes.resize(static_cast<std::size_t>(found.st_size));
  std::size_t done = 0;
  while (done < strings.bytes.size()) {
    const ssize_t count = ::pread(file, strings.bytes.data() + done, strings.bytes.size() - done,
                                  static_cast<off_t>(done));
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  char* next = strings.bytes.data();
  for (std::uint32_t index = 0; index < order.string_count; ++index) {
    if (next >= strings.bytes.data() + strings.bytes.size()) return false;
    (index < order.argument_count ? strings.arguments : strings.variables).push_back(next);
    next += std::strlen(next) + 1;
  }
  strings.arguments.push_back(nullptr);
  strings.variables.push_back(nullptr);
  return strings.arguments.size() > 1;
}

/// In the child, which shares the memory of its parent until it executes: nothing is allocated.
///
/// failures    a pipe that takes errno if it does not execute
/// outer_proc  -1: there is none
[[noreturn]] void become(Strings& strings, const int (&standard)[3], pid_t parent, const char* path,
                         int failures, int outer_proc) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it has died before that
  for (int number = 0; number < 3; ++number) ::dup2(standard[number], number);
  if (knows_descriptor_limit) ::setrlimit(RLIMIT_NOFILE, &first_descriptor_limit);
  for (const int number : signals_ignored_by_guardian) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (outer_proc >= 0) tell_host_pid(strings.host_pid, outer_proc);
  ::execve(path, strings.arguments.data(), strings.variables.data());
  const int error = errno;
  static_cast<void>(::write(failures, &error, sizeof error) == 0);
  ::_exit(127);
}

/// Where a program is found, as a shell would, by the PATH that it is given itself.
std::string path_of(const Strings& strings, int& error) {
  const std::string name = strings.arguments.front();
  if (name.find('/') != std::string::npos) return name;
  std::string_view folders = "/usr/local/bin:/usr/bin:/bin";
  for (const char* const variable : strings.variables)
    if (variable != nullptr && std::strncmp(variable, "PATH=", 5) == 0) folders = variable + 5;
  error = ENOENT;
  for (;;) {
    const auto end = folders.find(':');
    const std::string folder(folders.substr(0, end));
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    struct stat found {};
    if (::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode)) {
      if (::access(path.c_str(), X_OK) == 0) return path;
      error = EACCES;
    }
    if (end == std::string_view::npos) return {};
    folders.remove_prefix(end + 1);
  }
}

}  // namespace

void remember_descriptor_limit() {
  knows_descriptor_limit = ::getrlimit(RLIMIT_NOFILE, &first_descriptor_limit) == 0;
}

StartedProcess start_process(
    const Order& order, std::array<muster::base::FileHandle, start_descriptor_count>& descriptors,
    const muster::base::FileHandle& outer_proc) {
  StartedProcess started;
  Strings strings;
  if (!read_strings(descriptors[0].get(), order, strings)) {
    started.error = errno;
    return started;
  }
  if (outer_proc) strings.variables.insert(strings.variables.begin(), strings.host_pid);
  started.step = Report::Step::execution;
  const std::string path = path_of(strings, started.error);
  if (path.empty()) return started;
  // Above the standard ones, so that none of them is overwritten by another.
  std::array<muster::base::FileHandle, 3> own;
  int standard[3];
  for (std::size_t number = 0; number < 3; ++number) {
    own[number] =
        muster::base::FileHandle(::fcntl(descriptors[number + 1].get(), F_DUPFD_CLOEXEC, 3));
    standard[number] = own[number].get();
  }
  int failures[2];
  if (::pipe2(failures, O_CLOEXEC) != 0) {
    started.step = Report::Step::process;
    started.error = errno;
    return started;
  }
  const muster::base::FileHandle failed(failures[0]);
  muster::base::FileHandle end_of_child(failures[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::vfork();
  if (pid == 0)
    become(strings, standard, parent, path.c_str(), end_of_child.get(), outer_proc.get());
  const int fork_error = errno;
  end_of_child.close();
  int error = 0;
  if (pid < 0) {
    started.step = Report::Step::process;
    started.error = fork_error;
  } else if (::read(failed.get(), &error, sizeof error) == sizeof error) {
    started.error = error;  // the child has ended; it is taken as any other one
  } else {
    started.pid = pid;
  }
  return started;
}

}  // namespace musterrun
