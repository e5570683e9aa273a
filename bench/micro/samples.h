#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::bench {

inline constexpr std::size_t keys_at_once = 64;
inline constexpr std::uint32_t frame_body_bytes_max = 1U << 20;

/// A key of 16 bytes, made so that making it costs next to nothing.
class Key {
 public:
  void set(std::size_t number) {
    for (std::size_t at = text_.size(); at > text_.size() - digits; number /= 10) {
      text_[--at] = static_cast<char>('0' + number % 10);
    }
  }
  std::string_view name() const { return {text_.data(), text_.size()}; }

 private:
  static constexpr std::size_t digits = 6;

  std::array<char, 16> text_{'k', 'e', 'y', '-', 'n', 'u', 'm', 'b', 'e', 'r'};
};

/// Of 64 bytes, as all values here.
inline const std::string& value() {
  static const std::string bytes(64, 'v');
  return bytes;
}

/// Takes one of so many numbers after the other, each far from the one before.
class Numbers {
 public:
  explicit Numbers(std::size_t count) : count_(count) {}
  std::size_t count() const { return count_; }
  std::size_t next() { return number_ = (number_ + 7919) % count_; }

 private:
  std::size_t count_;
  std::size_t number_ = 0;
};

using Keys = std::array<Key, keys_at_once>;

inline const Keys& next_keys(Keys& keys, Numbers& numbers) {
  for (Key& key : keys) key.set(numbers.next());
  return keys;
}

}  // namespace muster::bench
