#include "net/doorbell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "net/loop.h"

namespace muster::net {

asio::execution_context::id Doorbell::id;

Doorbell::Doorbell(asio::execution_context& context)
    : service(context),
      fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      descriptor_(static_cast<asio::io_context&>(context)) {
  if (fd_ < 0) return;
  asio::error_code failed;
  descriptor_.assign(fd_, failed);
  if (failed) {
    ::close(fd_);
    fd_ = -1;
  } else {
    wait();
  }
}

Doorbell& Doorbell::of(asio::execution_context& context) {
  return asio::use_service<Doorbell>(context);
}

void Doorbell::ring(int fd) noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  // A full counter refuses the number, and is awake already.
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof(one));
  errno = saved;
}

std::uint64_t Doorbell::add(std::function<void()> listener) {
  if (last_number_ == 0) {
    LoopState::of(context()).on_failure([this](std::string_view) {
      if (!is_waiting_ && fd_ >= 0) wait();
    });
  }
  listeners_.emplace(++last_number_, std::move(listener));
  return last_number_;
}

void Doorbell::remove(std::uint64_t number) { listeners_.erase(number); }

void Doorbell::wait() {
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                         [this](const asio::error_code& failed) {
                           is_waiting_ = false;
                           if (failed) return;
                           rang();
                           wait();
                         });
  is_waiting_ = true;
}

void Doorbell::rang() {
  std::uint64_t rings = 0;
  [[maybe_unused]] const auto read = ::read(fd_, &rings, sizeof(rings));
  // A listener may remove itself and others.
  std::vector<std::uint64_t> numbers;
  numbers.reserve(listeners_.size());
  for (const auto& [number, listener] : listeners_) numbers.push_back(number);
  for (const std::uint64_t number : numbers) {
    const auto found = listeners_.find(number);
    if (found == listeners_.end()) continue;
    const std::function<void()> listener = found->second;
    listener();
  }
}

void Doorbell::shutdown() {
  listeners_.clear();
  asio::error_code ignored;
  descriptor_.close(ignored);
}

}  // namespace muster::net
