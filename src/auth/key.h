#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/secret/secret_bytes.h"
#include "muster/result.h"

namespace muster::auth {

/// Random bytes that two sides share, from which keys of connections are derived.
///
/// There is one copy of them, which no core dump has: a key is moved, and its source is empty
/// afterwards. The bytes are overwritten when the key is replaced or destroyed. Nothing prints a
/// key.
class Key {
 public:
  static constexpr std::size_t bytes_min = 32;
  static constexpr std::size_t bytes_max = 64;
  /// How many of its bytes differ at least. Of 32 random ones fewer do once in 10^36 keys.
  static constexpr std::size_t different_bytes_min = 8;

  /// Empty: it is nobody's key.
  Key() = default;
  Key(Key&& other) noexcept = default;
  Key& operator=(Key&& other) noexcept = default;

  /// errors  invalid_argument: they are too few, too many, or no random ones. The detail has none
  ///         of them
  static Result<Key> of(std::string_view bytes);
  /// Reads base64 as in RFC 4648, with its padding or without, and nothing else beside it.
  ///
  /// errors  invalid_argument, as above. The detail has nothing of the text
  static Result<Key> read(std::string_view base64);

  bool is_empty() const { return bytes_.size() == 0; }
  /// As long as the key, or that to which it was moved, is there.
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  /// With padding; `wipe` it afterwards.
  std::string base64() const;

  /// Takes as long for all keys of one length.
  friend bool operator==(const Key& a, const Key& b);

 private:
  explicit Key(std::size_t size) : bytes_(size) {}

  /// The first rule that the bytes break; empty: none.
  std::string_view weakness() const;

  base::SecretBytes bytes_;
};

}  // namespace muster::auth
