#include "input.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace musterctl {
namespace {

/// All of the standard input, up to one byte more than `bytes_max`; none: it cannot be read, and
/// errno says why.
std::optional<std::string> read_input(std::size_t bytes_max) {
  std::string read;
  std::array<char, 64 * 1024> piece;
  while (read.size() <= bytes_max) {
    const std::size_t room = std::min(piece.size(), bytes_max + 1 - read.size());
    const ssize_t count = ::read(STDIN_FILENO, piece.data(), room);
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    read.append(piece.data(), static_cast<std::size_t>(count));
  }
  return read;
}

}  // namespace

std::optional<Answer> read_if_dash(std::string& value, Run& run) {
  if (value != "-") return std::nullopt;
  auto input = read_input(run.store.limits().value_bytes_max);
  if (!input) {
    const std::string complaint =
        std::string("cannot read the standard input: ") + std::strerror(errno);
    Json error = {{"code", "unreadable_input"}, {"message", complaint}};
    return Answer{{{"error", std::move(error)}}, "", complaint, exit_refused};
  }
  value = *std::move(input);
  run.deadline = std::chrono::steady_clock::now() + run.timeout;
  return std::nullopt;
}

}  // namespace musterctl
