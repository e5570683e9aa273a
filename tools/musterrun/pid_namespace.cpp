#include "pid_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace musterrun {

namespace {

using muster::base::FileHandle;
using muster::launch::PidNamespace;

/// How far the way into the namespace went, as the processes on it tell through a pipe.
struct Step {
  enum class Kind { failed, forked, ready } kind = Kind::failed;
  pid_t pid = 0;       ///< forked
  int error = 0;       ///< failed: errno
  char what[32] = {};  ///< failed
};

void tell(int pipe, const Step& step) { static_cast<void>(::write(pipe, &step, sizeof step) == 0); }

[[noreturn]] void give_up(int pipe, const char* what) {
  Step step;
  step.error = errno;
  std::snprintf(step.what, sizeof step.what, "%s", what);
  tell(pipe, step);
  ::_exit(1);
}

bool write_file(const char* path, const std::string& text) {
  const FileHandle file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Who may not make namespaces may where it is its own administrator, as the same user as before.
bool become_own_administrator() {
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  return ::unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/setgroups", "deny") &&
         write_file("/proc/self/uid_map", user + " " + user + " 1") &&
         write_file("/proc/self/gid_map", group + " " + group + " 1");
}

/// The first process of the namespace: its /proc shows the namespace's processes.
void make_own_proc(int pipe) {
  // What is mounted later outside is seen inside, and not the other way round.
  if (::mount("none", "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0) give_up(pipe, "mount of /");
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    give_up(pipe, "mount of /proc");
}

/// Between this process and the child: a process that has unshared is not in the namespace itself.
[[noreturn]] void fork_first(FileHandle pipe, PidNamespace wanted,
                             const std::function<int(FileHandle)>& body) {
  FileHandle outer_proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!outer_proc) give_up(pipe.get(), "open of /proc");
  constexpr int wanted_namespaces = CLONE_NEWPID | CLONE_NEWNS;
  if (::unshare(wanted_namespaces) != 0) {
    if (errno != EPERM || wanted != PidNamespace::always) give_up(pipe.get(), "unshare");
    if (!become_own_administrator()) give_up(pipe.get(), "unshare with a user namespace");
    if (::unshare(wanted_namespaces) != 0) give_up(pipe.get(), "unshare");
  }
  const pid_t pid = ::fork();
  if (pid < 0) give_up(pipe.get(), "fork");
  if (pid > 0) {
    Step step;
    step.kind = Step::Kind::forked;
    step.pid = pid;
    tell(pipe.get(), step);
    ::_exit(0);
  }
  make_own_proc(pipe.get());
  Step ready;
  ready.kind = Step::Kind::ready;
  tell(pipe.get(), ready);
  pipe.close();
  ::_exit(body(std::move(outer_proc)));
}

}  // namespace

NamespaceFork fork_into_namespace(PidNamespace wanted,
                                  const std::function<int(FileHandle outer_proc)>& body) {
  NamespaceFork made;
  int pair[2];
  if (::pipe2(pair, O_CLOEXEC) != 0) {
    made.problem = std::string("pipe: ") + std::strerror(errno);
    return made;
  }
  const FileHandle steps(pair[0]);
  FileHandle pipe(pair[1]);
  const pid_t between = ::fork();
  if (between == 0) fork_first(std::move(pipe), wanted, body);
  pipe.close();
  Step step;
  pid_t child = -1;
  bool is_ready = false;
  while (between > 0 && ::read(steps.get(), &step, sizeof step) == sizeof step) {
    if (step.kind == Step::Kind::forked) child = step.pid;
    is_ready = is_ready || step.kind == Step::Kind::ready;
    if (step.kind == Step::Kind::failed)
      made.problem = std::string(step.what) + ": " + std::strerror(step.error);
  }
  if (between < 0) made.problem = std::string("fork: ") + std::strerror(errno);
  if (between > 0) ::waitpid(between, nullptr, 0);
  if (is_ready && child > 0) {
    made.pid = child;
  } else {
    if (child > 0) ::waitpid(child, nullptr, 0);
    if (made.problem.empty()) made.problem = "the first process of the namespace has ended";
  }
  return made;
}

pid_t outer_pid_of(pid_t pid, const FileHandle& outer_proc) {
  if (!outer_proc) return pid;
  const FileHandle process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return pid;
  const std::string path = "self/fdinfo/" + std::to_string(process.get());
  const FileHandle file(::openat(outer_proc.get(), path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[512] = {};
  if (!file || ::read(file.get(), text, sizeof text - 1) <= 0) return pid;
  const char* const line = std::strstr(text, "\nPid:");
  int outer = 0;
  if (line == nullptr || std::sscanf(line, "\nPid:%d", &outer) != 1 || outer <= 0) return pid;
  return outer;
}

}  // namespace musterrun
