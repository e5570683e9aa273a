#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "core/keys/block.h"
#include "core/memory/slab.h"
#include "core/memory/wheel.h"

namespace muster::core {

/// A key that has a value, or that somebody waits for, or both. It stands in a slab and is linked
/// by slot numbers, half as long as pointers: with its place in the index, and the block of 96
/// bytes that a key of 16 and a value of 64 take, a key costs 140 bytes.
struct Entry {
  Entry(std::uint32_t its_slot, Block its_block, std::uint32_t its_hash, std::uint16_t its_account)
      : block(its_block),
        hash(its_hash),
        slot(its_slot),
        account(its_account & account_bits),
        has_value(false) {}

  bool present_at(Instant now) const { return has_value && now < deadline; }
  std::string_view key() const { return block.key(); }
  std::string_view value() const { return block.value(); }

  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::uint16_t account_bits = (1U << 15) - 1;

  Block block;
  Instant deadline = base::far_future;  ///< armed unless it is that
  std::uint32_t hash;
  std::uint32_t slot;
  std::uint32_t next_in_bucket = none;
  std::uint32_t previous_in_wheel = none;
  std::uint32_t next_in_wheel = none;
  WheelPlace place_in_wheel;
  std::uint16_t account : 15;  ///< that it is charged to
  std::uint16_t has_value : 1;
};
static_assert(sizeof(Entry) == 40);

/// How the entries of a table are linked in the wheel of their deadlines.
struct EntryLinks {
  using Ref = std::uint32_t;
  static constexpr Ref none = Entry::none;

  Instant at(Ref entry) const { return (*entries)[entry].deadline; }
  WheelPlace& place(Ref entry) const { return (*entries)[entry].place_in_wheel; }
  Ref& previous(Ref entry) const { return (*entries)[entry].previous_in_wheel; }
  Ref& next(Ref entry) const { return (*entries)[entry].next_in_wheel; }

  Slab<Entry>* entries;
};

}  // namespace muster::core
