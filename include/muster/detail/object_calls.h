#pragma once

// Between the calls of a group on objects and those on bytes: what a codec must be, and what its
// errors say. For muster/process_group.h and muster/asio.h alone.

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/config.h"
#include "muster/error.h"
#include "muster/result.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// The type that is sent for an object of type T: std::string for views of text, else T.
template <class T>
using ObjectOf = std::conditional_t<std::is_convertible_v<const T&, const char*> ||
                                        std::is_same_v<T, std::string_view>,
                                    std::string, T>;

namespace detail {

template <class>
inline constexpr bool is_never = false;

/// Of the arguments of a send or a receive: whether the peer is no Rank, or a number stands where a
/// Tag or a timeout is due.
template <class Peer, class... Rest>
inline constexpr bool is_misplaced =
    !std::is_same_v<Peer, Rank> || (std::is_arithmetic_v<Rest> || ...);

template <class T, class = void>
inline constexpr bool is_defined = false;
template <class T>
inline constexpr bool is_defined<T, std::void_t<decltype(sizeof(T))>> = true;

/// Says once per codec what is wrong with it.
template <class Codec>
struct CodecCheck {
  static_assert(is_defined<Codec>,
                "this codec is declared and not defined here: include its header, such as "
                "muster/codec_cereal.h for the default one");
};

/// A codec as the calls use it.
template <class Codec>
struct ObjectCodec {
  static constexpr bool is_here = is_defined<Codec>;

  static constexpr std::uint32_t id() {
    static_cast<void>(CodecCheck<Codec>());
    if constexpr (is_here) {
      return Codec::id;
    } else {
      return 0;
    }
  }

  template <class T>
  static Result<std::string> encode(const T& object) {
    static_cast<void>(CodecCheck<Codec>());
    if constexpr (is_here) {
      return Codec::template encode<ObjectOf<T>>(object);
    } else {
      return Error();
    }
  }

  template <class T>
  static Result<T> decode(std::string_view bytes) {
    static_cast<void>(CodecCheck<Codec>());
    if constexpr (is_here) {
      return Codec::template decode<T>(bytes);
    } else {
      return Error();
    }
  }

  /// The objects, or the error of the first that the codec refuses.
  template <class T>
  static Result<std::vector<std::string>> encode_all(const std::vector<T>& objects) {
    std::vector<std::string> all;
    all.reserve(objects.size());
    for (const T& object : objects) {
      auto bytes = encode<T>(object);
      if (!bytes) return std::move(bytes).error();
      all.push_back(*std::move(bytes));
    }
    return all;
  }
};

}  // namespace detail

MUSTER_END_NAMESPACE
