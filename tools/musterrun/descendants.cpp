#include "descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>

namespace musterrun {

namespace {

struct Entry {
  Descendant process;
  pid_t parent = 0;
};

/// Its /proc/PID/stat; nothing: it has ended.
bool read_entry(const char* name, Entry& entry) {
  const std::string path = std::string("/proc/") + name + "/stat";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[512];
  const ssize_t bytes = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  // The name of the program is in parentheses, and may contain some.
  const char* const behind = std::strrchr(text, ')');
  int parent = 0;
  if (behind == nullptr || std::sscanf(behind + 1, " %c %d", &entry.process.state, &parent) != 2)
    return false;
  entry.parent = parent;
  return std::from_chars(name, name + std::strlen(name), entry.process.pid).ec == std::errc();
}

}  // namespace

std::vector<Descendant> descendants() {
  std::multimap<pid_t, Descendant> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), &::closedir);
  while (const dirent* const found = folder ? ::readdir(folder.get()) : nullptr) {
    Entry entry;
    if (found->d_name[0] < '1' || found->d_name[0] > '9') continue;
    if (read_entry(found->d_name, entry)) children.emplace(entry.parent, entry.process);
  }
  std::vector<Descendant> all;
  std::vector<pid_t> parents = {::getpid()};
  while (!parents.empty()) {
    const auto [begin, end] = children.equal_range(parents.back());
    parents.pop_back();
    for (auto child = begin; child != end; ++child) {
      parents.push_back(child->second.pid);
      if (child->second.state != 'Z' && child->second.state != 'X') all.push_back(child->second);
    }
  }
  return all;
}

bool reap_children(const std::vector<pid_t>& kept) {
  for (;;) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      return errno == ECHILD;
    }
    if (ended.si_pid == 0) return false;
    if (std::find(kept.begin(), kept.end(), ended.si_pid) != kept.end()) return false;
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

std::vector<Descendant> kill_descendants() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  for (;;) {
    if (reap_children({})) return {};
    const std::vector<Descendant> left = descendants();
    for (const Descendant& each : left) ::kill(each.pid, SIGKILL);
    if (std::chrono::steady_clock::now() >= deadline) return left;
    std::this_thread::sleep_for(std::chrono::milliseconds(left.empty() ? 1 : 5));
  }
}

}  // namespace musterrun
