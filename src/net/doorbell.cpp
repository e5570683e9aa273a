#include "net/doorbell.h"

#include <unistd.h>

#include <cerrno>
#include <vector>

namespace muster::net {

static_assert(std::atomic<bool>::is_always_lock_free);

void Doorbell::ring() noexcept {
  const int saved = errno;
  has_rung_.store(true);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof(one));
  errno = saved;
}

std::uint64_t Doorbell::add(std::function<void()> listener) {
  listeners_.emplace(++last_number_, std::move(listener));
  return last_number_;
}

void Doorbell::answer() {
  // A listener may remove itself and others.
  std::vector<std::uint64_t> numbers;
  numbers.reserve(listeners_.size());
  has_rung_.store(false);
  for (const auto& [number, listener] : listeners_) numbers.push_back(number);
  for (const std::uint64_t number : numbers) {
    const auto found = listeners_.find(number);
    if (found == listeners_.end()) continue;
    const std::function<void()> listener = found->second;
    listener();
  }
}

}  // namespace muster::net
