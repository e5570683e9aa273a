#include "base/thread.h"

#include <pthread.h>

#include "base/without_signals.h"

namespace muster::base {

std::thread start_thread(const std::string& name, std::function<void()> run) {
  const WithoutSignals guard;
  return std::thread([name = name.substr(0, 15), run = std::move(run)]() mutable {
    ::pthread_setname_np(::pthread_self(), name.c_str());
    try {
      run();
      run = nullptr;  // what it holds ends here, on its thread
    } catch (...) {
    }
  });
}

}  // namespace muster::base
