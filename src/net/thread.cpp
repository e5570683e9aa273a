#include "net/thread.h"

#include <pthread.h>
#include <signal.h>

namespace muster::net {
namespace {

/// Blocks all signals for as long as it lives; a thread inherits the mask of its maker.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

std::thread start_thread(const std::string& name, std::function<void()> run) {
  const SignalsBlocked blocked;
  return std::thread([name = name.substr(0, 15), run = std::move(run)]() mutable {
    ::pthread_setname_np(::pthread_self(), name.c_str());
    try {
      run();
      run = nullptr;  // what it holds ends here, on its thread
    } catch (...) {
    }
  });
}

}  // namespace muster::net
