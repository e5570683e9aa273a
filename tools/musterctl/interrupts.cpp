#include "interrupts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "keyboard.h"

namespace musterctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds patience{300};  // of who pressed Ctrl-C

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

/// At most `time` from now, as poll wants it.
int milliseconds_of(Clock::duration time) {
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  constexpr std::chrono::milliseconds::rep longest = 3600 * 1000;
  return static_cast<int>(rounded < 0 ? 0 : rounded > longest ? longest : rounded);
}

void end_at_once() {
  Keyboard::restore();
  std::_Exit(0);
}

}  // namespace

Interrupts::Interrupts() {
  if (::pipe2(ends_, O_CLOEXEC) != 0) return;  // signals end the program as ever
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] { take_signals(); });
}

Interrupts::~Interrupts() {
  is_over_ = true;
  if (!thread_.joinable()) return;
  ::pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
  for (const int end : ends_) ::close(end);
}

void Interrupts::take_signals() {
  const sigset_t signals = ending_signals();
  int signal = 0;
  ::sigwait(&signals, &signal);
  if (is_over_) return;
  const char mark = 0;
  if (::write(ends_[1], &mark, 1) != 1) end_at_once();
  const timespec time = {0, std::chrono::nanoseconds(patience).count()};
  if (::sigtimedwait(&signals, nullptr, &time) < 0 || !is_over_) end_at_once();
}

Interrupts::Event Interrupts::wait_until(Clock::time_point until, int keyboard) const {
  for (;;) {
    pollfd files[] = {{ends_[0], POLLIN, 0}, {STDOUT_FILENO, 0, 0}, {keyboard, POLLIN, 0}};
    const int count = ::poll(files, 3, milliseconds_of(until - Clock::now()));
    if (count > 0 && files[0].revents != 0) return Event::asked_to_end;
    if (count > 0 && (files[1].revents & (POLLERR | POLLHUP)) != 0) return Event::nobody_reads;
    if (count > 0 && files[2].revents != 0) return Event::typed;
    if (Clock::now() >= until) return Event::time_is_over;
  }
}

}  // namespace musterctl
