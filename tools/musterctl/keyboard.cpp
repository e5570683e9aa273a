#include "keyboard.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace musterctl {
namespace {

termios terminal_before;
std::atomic<bool> is_changed{false};

}  // namespace

Keyboard::Keyboard() {
  // In the background, to change the terminal would stop the program.
  if (::isatty(STDIN_FILENO) == 0 || ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) return;
  if (::tcgetattr(STDIN_FILENO, &terminal_before) != 0) return;
  termios changed = terminal_before;
  changed.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  changed.c_cc[VMIN] = 0;
  changed.c_cc[VTIME] = 0;
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &changed) != 0) return;
  ::signal(SIGTTIN, SIG_IGN);  // sent to the background later, it goes on without keys
  ::signal(SIGTTOU, SIG_IGN);
  is_changed = true;
  is_ours_ = true;
}

Keyboard::~Keyboard() { restore(); }

std::string Keyboard::typed() {
  std::array<char, 64> keys{};
  const ssize_t count = ::read(STDIN_FILENO, keys.data(), keys.size());
  if (count <= 0) is_ours_ = false;
  return count > 0 ? std::string(keys.data(), static_cast<std::size_t>(count)) : std::string();
}

void Keyboard::restore() {
  if (is_changed.exchange(false)) ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

}  // namespace musterctl
