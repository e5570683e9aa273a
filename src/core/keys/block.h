#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "core/memory/payload.h"

namespace muster::core {

struct KeyExtras;  // core/keys/table_state.h

/// A longer value is a Payload, shared with the replies that carry it; a shorter one is copied into
/// them, which costs less than a piece of its own in what is sent.
inline constexpr std::size_t shared_value_bytes_min = 2048;

/// What is to be stored: two pieces one after the other, or a payload instead.
struct NewValue {
  std::string_view first;
  std::string_view second;
  Payload shared;
};

/// What an entry has on the heap, in one allocation: its key, its value, and the place for what few
/// keys have beside that.
///
///     [KeyExtras*]  sizes  key  value      a short value
///     [KeyExtras*]  sizes  Payload  key    a long one
///
/// A handle of one pointer, to the sizes: who has made a block frees it. What is allocated is
/// rounded up to what the allocator takes in any case; a value that comes to the same is
/// overwritten in place.
class Block {
 public:
  enum class Extras : bool { none, room };

  /// None.
  Block() = default;
  explicit operator bool() const { return at_ != nullptr; }
  /// Throws std::bad_alloc. The extras are null.
  static Block make(std::string_view key, const NewValue& value, Extras extras);
  void free();

  std::string_view key() const {
    return {at_ + sizeof(Sizes) + (sizes().is_shared ? sizeof(Payload) : 0), sizes().key_bytes};
  }
  /// Empty after `let_go_of_shared`.
  std::string_view value() const {
    if (!sizes().is_shared) return {at_ + sizeof(Sizes) + sizes().key_bytes, sizes().value_bytes};
    return shared() == nullptr ? std::string_view() : shared()->view();
  }
  bool is_shared() const { return sizes().is_shared; }
  const Payload& shared() const {
    return *std::launder(reinterpret_cast<const Payload*>(at_ + sizeof(Sizes)));
  }
  void let_go_of_shared();

  /// Whether `overwrite` can put a short value of this size in place of the one that is here.
  bool fits(std::size_t value_bytes) const {
    if (is_shared() || value_bytes >= shared_value_bytes_min) return false;
    return allocated_bytes(sizes().key_bytes, value_bytes, false, has_room_for_extras()) ==
           allocated_bytes();
  }
  /// By two pieces, the first of which may be the beginning of the one that is here.
  void overwrite(std::string_view first, std::string_view second);

  /// For whoever is about to read the key.
  const char* begin() const { return at_; }

  bool has_room_for_extras() const { return sizes().has_room_for_extras; }
  /// Null: none.
  KeyExtras* extras() const { return has_room_for_extras() ? extras_place() : nullptr; }
  void set_extras(KeyExtras* extras) { extras_place() = extras; }

  /// What the allocator takes for it, or would take.
  std::uint64_t taken_bytes() const;
  static std::uint64_t taken_bytes(std::size_t key_bytes, const NewValue& value, Extras extras);

 private:
  static constexpr std::uint32_t key_bytes_max = (1U << 30) - 1;

  struct Sizes {
    std::uint32_t key_bytes : 30;
    bool is_shared : 1;
    bool has_room_for_extras : 1;
    std::uint32_t value_bytes;  ///< 0 when it is shared
  };

  // Of the C library: a header in front of each piece of memory, which it rounds up.
  static constexpr std::size_t header_bytes = 8;
  static constexpr std::size_t rounded_to_bytes = 16;
  static constexpr std::size_t allocated_bytes_min = 24;

  static std::size_t allocated_bytes(std::size_t key_bytes, std::size_t value_bytes, bool is_shared,
                                     bool has_room_for_extras) {
    const std::size_t bytes = (has_room_for_extras ? sizeof(KeyExtras*) : 0) + sizeof(Sizes) +
                              (is_shared ? sizeof(Payload) : value_bytes) + key_bytes;
    const std::size_t taken =
        (bytes + header_bytes + rounded_to_bytes - 1) & ~(rounded_to_bytes - 1);
    return std::max(taken - header_bytes, allocated_bytes_min);
  }
  std::size_t allocated_bytes() const {
    const Sizes& has = sizes();
    return allocated_bytes(has.key_bytes, has.value_bytes, has.is_shared, has.has_room_for_extras);
  }

  Sizes& sizes() const { return *std::launder(reinterpret_cast<Sizes*>(at_)); }
  KeyExtras*& extras_place() const {
    return *std::launder(reinterpret_cast<KeyExtras**>(at_ - sizeof(KeyExtras*)));
  }

  char* at_ = nullptr;
};

/// A block with a charge for what it takes. None: the quota refuses, or the system.
Block make_charged(Quota& quota, std::string_view key, const NewValue& value, Block::Extras extras,
                   Charging charging);
void free_charged(Quota& quota, Block& block);

}  // namespace muster::core
