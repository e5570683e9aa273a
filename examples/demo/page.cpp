#include "page.h"

#include <cstdarg>
#include <cstdio>

#include "demo.h"

namespace demo {

Page::Page() : began_us_(now_us()) {}

double Page::seconds() const { return static_cast<double>(now_us() - began_us_) / 1e6; }

void Page::title(const std::string& text) {
  std::printf("\n%d  %-82s%8.3f s\n", ++title_count_, text.c_str(), seconds());
  std::fflush(stdout);
}

void Page::line(std::string subject, std::string text) const {
  constexpr std::size_t columns_max = 84;
  while (text.size() > columns_max) {
    const auto blank = text.rfind(' ', columns_max);
    if (blank == std::string::npos) break;
    std::printf("   %-13s%s\n", subject.c_str(), text.substr(0, blank).c_str());
    subject.clear();
    text = "  " + text.substr(blank + 1);
  }
  std::printf("   %-13s%s\n", subject.c_str(), text.c_str());
  std::fflush(stdout);
}

void Page::note(const std::string& text) const {
  std::printf("\n%s\n", text.c_str());
  std::fflush(stdout);
}

std::string text(const char* format, ...) {
  char line[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return line;
}

std::string milliseconds(std::int64_t us) { return text("%.1f ms", static_cast<double>(us) / 1e3); }

}  // namespace demo
