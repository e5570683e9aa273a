#pragma once

#include <cstdint>
#include <string>

// How the demo prints: titles with the time that has passed, and lines of a subject and what is
// said of it.

namespace demo {

class Page {
 public:
  Page();

  void title(const std::string& text);
  /// What is too long goes on in the next line.
  void line(std::string subject, std::string text) const;
  /// A line of its own.
  void note(const std::string& text) const;

  /// Since the page was begun.
  double seconds() const;

 private:
  std::int64_t began_us_;
  int title_count_ = 0;
};

/// As printf.
__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...);

std::string milliseconds(std::int64_t us);

}  // namespace demo
