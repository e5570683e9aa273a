#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/time.h"

namespace muster::sim {

using base::Instant;

/// What happened, in its order: always as a hash, and as lines for people where they are wanted.
class Trace {
 public:
  explicit Trace(bool is_printed) : is_printed_(is_printed) {}

  /// `digest` is hashed; `text` makes the line.
  template <class Text>
  void note(Instant now, std::string_view who, std::uint64_t digest, Text&& text) {
    mix(static_cast<std::uint64_t>(now.time_since_epoch().count()));
    mix(digest);
    if (is_printed_) print(now, who, text());
  }

  std::uint64_t hash() const { return hash_; }

 private:
  void mix(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15;
    hash_ ^= hash_ >> 29;
  }
  static void print(Instant now, std::string_view who, const std::string& line) {
    const auto passed = now.time_since_epoch() - std::chrono::seconds(1000);
    std::printf("%11.6f  %-10.*s %s\n", static_cast<double>(passed.count()) / 1e6,
                static_cast<int>(who.size()), who.data(), line.c_str());
  }

  bool is_printed_;
  std::uint64_t hash_ = 1;
};

}  // namespace muster::sim
