#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// What every fuzzer uses. Each is one file with
//
//    extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
//
// which must hold for any bytes; one that ends the process is a finding.

namespace muster::fuzz {

/// An invariant; libFuzzer keeps the input for which it does not hold.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// The bytes of the fuzzer, read as choices. When they are used up every choice is the first.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool is_over() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  std::uint64_t number(std::size_t width_bytes) {
    std::uint64_t value = 0;
    for (std::size_t index = 0; index < width_bytes; ++index) value = value << 8 | byte();
    return value;
  }
  /// Less than `end`, which is at most 65,536.
  std::size_t below(std::size_t end) {
    if (end <= 1) return 0;
    return static_cast<std::size_t>(number(end <= 256 ? 1 : 2)) % end;
  }
  std::string_view bytes(std::size_t count) {
    const std::string_view taken = rest_.substr(0, std::min(count, rest_.size()));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  /// Mostly small, at times at the edges of what fits.
  std::uint64_t wild() {
    const std::uint8_t first = byte();
    if (first < 240) return first % 16;
    if (first < 248) return number(4);
    return first < 252 ? number(8) : UINT64_MAX - (first - 252);
  }

 private:
  std::string_view rest_;
};

}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
