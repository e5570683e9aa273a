#include "aside.h"

#include <unistd.h>

#include "gil.h"
#include "without_signals.h"

namespace muster::python {

Aside::~Aside() {
  if (!thread_.joinable()) return;
  if (process_ != ::getpid()) {
    thread_.detach();                    // it is the parent's
    static_cast<void>(wake_.release());  // its end would wait for whoever waits
    return;
  }
  change([this] { is_cancelled_ = true; });
  thread_.join();
}

void Aside::start(std::function<void()> call) {
  const WithoutSignals blocked;
  process_ = ::getpid();
  thread_ = std::thread([this, call = std::move(call)] {
    {
      const Interruptible interruptible(&Aside::look, this);
      call();
    }
    change([this] { is_over_ = true; });
  });
}

bool Aside::look(void* self) noexcept { return static_cast<Aside*>(self)->is_cancelled(); }

bool Aside::is_cancelled() const {
  return is_cancelled_.load(std::memory_order_relaxed) || is_ending();
}

}  // namespace muster::python
