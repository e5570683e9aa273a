#include "muster/interruptible.h"

#include <algorithm>

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
