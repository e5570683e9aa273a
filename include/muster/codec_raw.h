#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "muster/codec.h"
#include "muster/config.h"
#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

template <class T>
inline constexpr bool is_byte = std::is_same_v<T, char> || std::is_same_v<T, unsigned char> ||
                                std::is_same_v<T, signed char> || std::is_same_v<T, std::byte>;

/// Whether T is an array of bytes whose size is part of the type.
template <class T>
inline constexpr bool is_byte_array = false;
template <class T, std::size_t N>
inline constexpr bool is_byte_array<std::array<T, N>> = is_byte<T>;

/// Whether T is a growing row of bytes.
template <class T>
inline constexpr bool is_byte_row = std::is_same_v<T, std::string>;
template <class T, class Allocator>
inline constexpr bool is_byte_row<std::vector<T, Allocator>> = is_byte<T>;

}  // namespace detail

/// Bytes as they are, for objects that have a form of their own, such as an NCCL id.
///
/// Takes std::string, std::vector and std::array of char, signed char, unsigned char (which is
/// std::uint8_t) or std::byte. Structs are not taken: their padding and byte order differ between
/// builds.
struct RawCodec {
  static constexpr std::uint32_t id = codec_id::raw;

  /// errors  none
  template <class T>
  static Result<std::string> encode(const T& object) {
    static_assert(detail::is_byte_row<T> || detail::is_byte_array<T>,
                  "RawCodec takes std::string, std::vector and std::array of bytes");
    if (object.empty()) return std::string();
    return std::string(reinterpret_cast<const char*>(object.data()), object.size());
  }

  /// errors  codec_failure (another number of bytes than a std::array has: expected, actual)
  template <class T>
  static Result<T> decode(std::string_view bytes) {
    static_assert(detail::is_byte_row<T> || detail::is_byte_array<T>,
                  "RawCodec takes std::string, std::vector and std::array of bytes");
    T object{};
    if constexpr (detail::is_byte_row<T>) {
      object.resize(bytes.size());
    } else if (bytes.size() != object.size()) {
      Error error;
      error.code = ErrorCode::codec_failure;
      error.expected = object.size();
      error.actual = bytes.size();
      error.detail = "raw: the object has another number of bytes than the array";
      return error;
    }
    if (!bytes.empty()) std::memcpy(object.data(), bytes.data(), bytes.size());
    return object;
  }
};

MUSTER_END_NAMESPACE
