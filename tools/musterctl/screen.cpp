#include "screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "output.h"

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

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

/// A long line is wrapped.
std::size_t rows_of(std::string_view line, const Size& size) {
  return std::max<std::size_t>((width_of(line) + size.columns - 1) / size.columns, 1);
}

/// Adds a line if there is room for it, and takes the room.
bool add_line(std::string& shown, std::string_view line, const Size& size, std::size_t& room) {
  constexpr const char* clear_line = "\x1b[K";
  const std::size_t rows = rows_of(line, size);
  if (rows > room) return false;
  room -= rows;
  shown.append(line).append(clear_line).append("\n");
  return true;
}

std::ptrdiff_t first_of_last_page(const std::vector<std::string_view>& lines, const Size& size,
                                  std::size_t room) {
  auto first = static_cast<std::ptrdiff_t>(lines.size());
  while (first > 0) {
    const std::size_t rows = rows_of(lines[static_cast<std::size_t>(first - 1)], size);
    if (rows > room) break;
    room -= rows;
    --first;
  }
  return std::min(first,
                  std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(lines.size()) - 1, 0));
}

enum class Move { none, line_up, line_down, page_up, page_down, to_top, to_end, end };

struct Key {
  std::size_t bytes_count = 1;
  Move means = Move::none;
};

/// The one that `typed` begins with, as terminals send it.
Key first_key(std::string_view typed) {
  constexpr std::pair<std::string_view, Move> keys[] = {
      {"\x1b[A", Move::line_up},   {"\x1bOA", Move::line_up},
      {"k", Move::line_up},        {"\x1b[B", Move::line_down},
      {"\x1bOB", Move::line_down}, {"j", Move::line_down},
      {"\n", Move::line_down},     {"\x1b[5~", Move::page_up},
      {"b", Move::page_up},        {"\x1b[6~", Move::page_down},
      {" ", Move::page_down},      {"\x1b[H", Move::to_top},
      {"\x1bOH", Move::to_top},    {"\x1b[1~", Move::to_top},
      {"g", Move::to_top},         {"\x1b[F", Move::to_end},
      {"\x1bOF", Move::to_end},    {"\x1b[4~", Move::to_end},
      {"G", Move::to_end},         {"q", Move::end}};
  for (const auto& [bytes, means] : keys) {
    if (typed.starts_with(bytes)) return {bytes.size(), means};
  }
  return {};
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

std::string Screen::draw(const std::string& head, const std::string& body) {
  constexpr const char* to_top = "\x1b[H";
  constexpr const char* clear_below = "\x1b[J";
  const Size size = size_of_terminal();
  std::string shown = to_top;
  std::size_t room = size.rows - 1;
  for (const std::string_view line : lines_of(head)) add_line(shown, line, size, room);
  const auto lines = lines_of(body);
  const auto count = static_cast<std::ptrdiff_t>(lines.size());
  last_first_ = first_of_last_page(lines, size, room);
  first_ = std::clamp<std::ptrdiff_t>(first_, 0, last_first_);
  std::ptrdiff_t end = first_;
  while (end < count && add_line(shown, lines[static_cast<std::size_t>(end)], size, room)) ++end;
  page_ = std::max<std::ptrdiff_t>(end - first_, 1);
  if (last_first_ > 0) {
    const std::string place = "lines " + std::to_string(first_ + 1) + " to " + std::to_string(end) +
                              " of " + std::to_string(count);
    std::size_t row = 1;
    add_line(shown, place + (can_scroll_ ? "; arrow and page keys scroll, q ends" : ""), size, row);
    if (shown.ends_with('\n')) shown.pop_back();
  }
  return shown + clear_below;
}

Screen::Typed Screen::take(std::string_view keys) {
  const std::ptrdiff_t before = first_;
  while (!keys.empty()) {
    const Key key = first_key(keys);
    keys.remove_prefix(key.bytes_count);
    switch (key.means) {
      case Move::line_up: --first_; break;
      case Move::line_down: ++first_; break;
      case Move::page_up: first_ -= page_; break;
      case Move::page_down: first_ += page_; break;
      case Move::to_top: first_ = 0; break;
      case Move::to_end: first_ = last_first_; break;
      case Move::end: return Typed::end;
      case Move::none: break;
    }
    first_ = std::clamp<std::ptrdiff_t>(first_, 0, last_first_);
  }
  return first_ == before ? Typed::nothing : Typed::moved;
}

std::string clock_text() { return time_text("%H:%M:%S", ::localtime_r); }
std::string date_text() { return time_text("%Y-%m-%d %H:%M:%S", ::localtime_r); }

std::string utc_text() { return time_text("%Y-%m-%dT%H:%M:%SZ", ::gmtime_r); }

}  // namespace musterctl
