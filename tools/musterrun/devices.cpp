#include "devices.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <thread>
#include <vector>

namespace musterrun {
namespace {

/// A driver that hangs does not stop the launch.
constexpr unsigned int cuda_patience_s = 30;

bool is_device(std::string_view entry) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) return true;
  return !entry.empty() && entry.find_first_not_of("0123456789") == entry.npos;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

int count_listed(std::string_view list) {
  int count = 0;
  for (bool is_last = false; !is_last;) {
    const std::size_t comma = list.find(',');
    is_last = comma == list.npos;
    if (!is_device(trimmed(list.substr(0, comma)))) break;
    ++count;
    if (!is_last) list.remove_prefix(comma + 1);
  }
  return count;
}

int ask_libcuda() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 0;
  using Init = int (*)(unsigned int);
  using Count = int (*)(int*);
  const auto init = reinterpret_cast<Init>(::dlsym(library, "cuInit"));
  const auto count_of = reinterpret_cast<Count>(::dlsym(library, "cuDeviceGetCount"));
  int count = 0;
  if (init == nullptr || count_of == nullptr || init(0) != 0 || count_of(&count) != 0) return 0;
  return count;
}

/// In a process of its own: what the driver opens and maps stays there, and it may hang or crash.
int ask_libcuda_elsewhere() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(cuda_patience_s);
    const int count = ask_libcuda();
    const bool is_told = ::write(ends[1], &count, sizeof count) == sizeof count;
    ::_exit(is_told ? 0 : 1);
  }
  ::close(ends[1]);
  int count = 0;
  ssize_t got = -1;
  if (child > 0) {
    do {
      got = ::read(ends[0], &count, sizeof count);
    } while (got < 0 && errno == EINTR);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(ends[0]);
  return got == sizeof count ? count : 0;
}

}  // namespace

int gpu_count(const muster::launch::Variables& environment) {
  if (const std::string* const list =
          muster::launch::find_variable(environment, "CUDA_VISIBLE_DEVICES"))
    return count_listed(*list);
  return ask_libcuda_elsewhere();
}

int cpu_count() {
  // The mask of a machine may be larger than cpu_set_t.
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const std::size_t bytes = sets * sizeof(cpu_set_t);
    if (::sched_getaffinity(0, bytes, mask.data()) == 0)
      return std::max(CPU_COUNT_S(bytes, mask.data()), 1);
    if (errno != EINVAL) break;
  }
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

}  // namespace musterrun
