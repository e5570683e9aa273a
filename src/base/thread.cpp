#include "base/thread.h"

#include <pthread.h>

#include <algorithm>

#include "base/without_signals.h"
#include "muster/interruptible.h"

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

MUSTER_BEGIN_NAMESPACE

namespace {

thread_local const Interruptible* of_this_thread = nullptr;

}  // namespace

Interruptible::Interruptible(IsInterrupted look, void* argument, Duration period) noexcept
    : is_interrupted_(look),
      argument_(argument),
      period_(std::clamp<Duration>(period, std::chrono::milliseconds(1), std::chrono::hours(1))),
      outer_(of_this_thread) {
  of_this_thread = this;
}

Interruptible::~Interruptible() { of_this_thread = outer_; }

const Interruptible* Interruptible::current() noexcept { return of_this_thread; }

MUSTER_END_NAMESPACE
