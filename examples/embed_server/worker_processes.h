#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "../in_one_process.h"

namespace example {

/// Starts this program again. The worker gets no signal that the server holds back for its loop or
/// that a terminal sends to the server; it inherits none of Muster's descriptors.
inline pid_t start_worker(const std::string& address, int rank, int world_size) {
  std::vector<std::string> words = {"worker", "--worker", address, std::to_string(rank),
                                    std::to_string(world_size)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setsigmask(&how, &none);
  pid_t worker = -1;
  const int failed =
      ::posix_spawn(&worker, "/proc/self/exe", nullptr, &how, arguments.data(), environ);
  ::posix_spawnattr_destroy(&how);
  require(failed == 0, "a worker starts");
  return worker;
}

/// The processes of the workers. Those that still run when this goes are killed.
class WorkerProcesses {
 public:
  WorkerProcesses() = default;
  ~WorkerProcesses() {
    for (const auto& [pid, rank] : running_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  void start(const std::string& address, int worker_count) {
    for (int rank = 1; rank <= worker_count; ++rank) {
      running_[start_worker(address, rank, worker_count + 1)] = rank;
    }
  }

  /// Looks which have ended, and names those that should not have as they did.
  void reap() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const int rank = running_.at(pid);
      running_.erase(pid);
      if (status == 0) continue;
      ++failed_count_;
      std::cerr << "worker " << rank << " (pid " << pid << ")"
                << (WIFSIGNALED(status) ? " was ended by signal " : " exited with ")
                << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)) << '\n';
    }
  }

  /// Names and kills those that still run, also those that are stopped.
  void kill() const {
    for (const auto& [pid, rank] : running_) {
      std::cerr << "worker " << rank << " (pid " << pid << ") does not end\n";
      ::kill(pid, SIGKILL);
    }
  }

  bool none_runs() const { return running_.empty(); }
  int failed_count() const { return failed_count_; }

 private:
  std::map<pid_t, int> running_;  // pid -> rank
  int failed_count_ = 0;
};

/// A worker ends with the server, however that ends. One that is too late for this finds no server.
inline void end_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace example
