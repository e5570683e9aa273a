#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace musterctl {

/// Whether the standard output is a terminal that can be redrawn.
bool is_screen();

/// What a terminal shows of a text: its head, and as many lines of its body as there is room for.
class Screen {
 public:
  /// can_scroll  whether somebody is there who types
  explicit Screen(bool can_scroll) : can_scroll_(can_scroll) {}

  /// The bytes that make the terminal show it from its top.
  std::string draw(const std::string& head, const std::string& body);

  enum class Typed { nothing, moved, end };
  /// Scrolls by arrow and page keys, Home and End, also as in `less`; "q" ends.
  Typed take(std::string_view keys);

 private:
  bool can_scroll_;
  std::ptrdiff_t first_ = 0;       ///< line of the body that is shown first
  std::ptrdiff_t last_first_ = 0;  ///< from which on the last line is shown, too
  std::ptrdiff_t page_ = 1;        ///< lines that were shown
};

/// The local time of day, "12:31:05".
std::string clock_text();
/// "2026-11-21 12:31:05".
std::string date_text();
/// "2026-11-21T11:31:05Z".
std::string utc_text();

}  // namespace musterctl
