#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "muster/types.h"

// The fields of a message are named once, in their order on the wire, by a function
// `fields(codec, message)` beside its struct. A codec is called with the name and the member of
// each field: the encoder of a const message, the decoder of a message to be filled, and the tests'
// golden files, which need the names.
//
// A byte string is a u32 length and the bytes, a list is a u32 count and the items, an optional
// is a u8 (0 or 1) and then the value, an enum or bool in a fixed field is a u8. A field that a
// later version has added is an optional one, with a tag: `codec.further(tag, name, member)`,
// behind all others; it is left out while it is empty. A duration is a u64 of microseconds; a
// longer one than `duration_max` (100 years) is read as that.

namespace muster::wire {

/// The longest duration in any field but the timeout of a request.
inline constexpr Duration duration_max = std::chrono::hours(24 * 365 * 100);

template <class Message, class Struct>
concept Is = std::same_as<std::remove_const_t<Message>, Struct>;

/// Whether the message has a field list. Such messages may be items of others.
template <class Codec, class Message>
concept HasFields = requires(Codec& codec, Message& message) {
  fields(codec, message);
};

/// The least bytes that an item of a list takes. The count of a list is checked against it.
template <class Item>
inline constexpr std::size_t item_bytes_min = 1;  // bool, optional
template <>
inline constexpr std::size_t item_bytes_min<std::uint64_t> = 8;
template <>
inline constexpr std::size_t item_bytes_min<std::string_view> = 4;
template <>
inline constexpr std::size_t item_bytes_min<std::pair<std::string_view, std::string_view>> = 8;
template <>
inline constexpr std::size_t item_bytes_min<RankRange> = 8;

}  // namespace muster::wire
