#include "screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "bytes.h"

namespace musterctl {
namespace {

struct Size {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

Size size_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

std::string time_text(const char* form, std::tm* (*parts_of)(const std::time_t*, std::tm*)) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  parts_of(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), form, &parts)};
}

}  // namespace

bool is_screen() {
  const char* const kind = std::getenv("TERM");
  const bool can_move = kind != nullptr && std::string_view(kind) != "dumb" && *kind != '\0';
  return can_move && ::isatty(STDOUT_FILENO) == 1;
}

std::string screenful_of(const std::string& text) {
  constexpr const char* to_top = "\x1b[H";
  constexpr const char* clear_line = "\x1b[K";
  constexpr const char* clear_below = "\x1b[J";
  const Size size = size_of_terminal();
  std::string shown = to_top;
  std::size_t row = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::size_t rows = std::max<std::size_t>(
        (width_of(line) + size.columns - 1) / size.columns, 1);  // a long one is wrapped
    if (row + rows > size.rows - 1) {
      const auto left =
          std::count(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), '\n');
      shown += "... and " + std::to_string(left) + " more lines" + clear_line;
      break;
    }
    shown.append(line).append(clear_line).append("\n");
    row += rows;
    begin = end + 1;
  }
  return shown + clear_below;
}

std::string clock_text() { return time_text("%H:%M:%S", ::localtime_r); }
std::string date_text() { return time_text("%Y-%m-%d %H:%M:%S", ::localtime_r); }

std::string utc_text() { return time_text("%Y-%m-%dT%H:%M:%SZ", ::gmtime_r); }

}  // namespace musterctl
