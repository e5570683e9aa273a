#include "devices.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace musterrun {

namespace {

constexpr int no_driver = 255;

/// In a child.
int ask_driver() {
  void* const cuda = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) return no_driver;
  auto* const init = reinterpret_cast<int (*)(unsigned)>(::dlsym(cuda, "cuInit"));
  auto* const count = reinterpret_cast<int (*)(int*)>(::dlsym(cuda, "cuDeviceGetCount"));
  int found = 0;
  if (init == nullptr || count == nullptr) return no_driver;
  if (init(0) != 0 || count(&found) != 0) return 0;
  return std::min(found, no_driver - 1);
}

/// What is listed before the first entry that is none, as CUDA reads it.
int count_listed() {
  const char* const listed = std::getenv("CUDA_VISIBLE_DEVICES");
  if (listed == nullptr) return 0;
  int count = 0;
  for (std::string_view left = listed; !left.empty();) {
    const auto comma = left.find(',');
    const std::string_view entry = left.substr(0, comma);
    const bool is_number = entry.find_first_not_of("0123456789") == std::string_view::npos;
    const bool is_uuid = entry.substr(0, 4) == "GPU-" || entry.substr(0, 4) == "MIG-";
    if (entry.empty() || (!is_number && !is_uuid)) break;
    ++count;
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  return count;
}

}  // namespace

int count_gpus() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(ask_driver());
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool has_answered = child > 0 && WIFEXITED(status) && WEXITSTATUS(status) != no_driver;
  return has_answered ? WEXITSTATUS(status) : count_listed();
}

int count_processors() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace musterrun
