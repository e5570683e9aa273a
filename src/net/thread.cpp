#include "net/thread.h"

#include <pthread.h>
#include <sched.h>

#include "base/without_signals.h"

namespace muster::net {

std::thread start_thread(const std::string& name, std::function<void()> run) {
  const base::WithoutSignals guard;
  return std::thread([name = name.substr(0, 15), run = std::move(run)]() mutable {
    ::pthread_setname_np(::pthread_self(), name.c_str());
    try {
      run();
      run = nullptr;  // what it holds ends here, on its thread
    } catch (...) {
    }
  });
}

bool has_cores_to_spin() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 && CPU_COUNT(&cores) > 1;
}

}  // namespace muster::net
