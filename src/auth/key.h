#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::auth {

/// Random bytes that two sides share, from which keys of connections are derived.
///
/// There is one copy of them: a key is moved, and its source is empty afterwards. The bytes are
/// overwritten when the key is moved from, replaced or destroyed. Nothing prints a key.
class Key {
 public:
  static constexpr std::size_t bytes_min = 32;
  static constexpr std::size_t bytes_max = 64;
  /// How many of its bytes differ at least. Of 32 random ones fewer do once in 10^36 keys.
  static constexpr std::size_t different_bytes_min = 8;

  /// Empty: it is nobody's key.
  Key() = default;
  Key(Key&& other) noexcept { take(other); }
  Key& operator=(Key&& other) noexcept;
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key() { wipe_bytes(); }

  /// errors  invalid_argument: they are too few, too many, or no random ones. The detail has none
  ///         of them
  static Result<Key> of(std::string_view bytes);
  /// Reads base64 as in RFC 4648, with its padding or without, and nothing else beside it.
  ///
  /// errors  invalid_argument, as above. The detail has nothing of the text
  static Result<Key> read(std::string_view base64);

  bool is_empty() const { return size_ == 0; }
  /// As long as the key stays where it is.
  std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), size_}; }
  /// With padding; `wipe` it afterwards.
  std::string base64() const;

  /// Takes as long for all keys of one length.
  friend bool operator==(const Key& a, const Key& b);

 private:
  void take(Key& other) noexcept;
  void wipe_bytes() noexcept;
  /// The first rule that the bytes break; empty: none.
  std::string_view weakness() const;

  std::array<std::uint8_t, bytes_max> bytes_{};
  std::size_t size_ = 0;
};

}  // namespace muster::auth
