#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/memory/freed_memory.h"
#include "core/memory/limit.h"

namespace muster::core {

/// How far past its limit a quota goes, see there.
enum class Charging : std::uint8_t { normal, reserve, always };

/// How a limit becomes lower than what is used: at once; or it sinks with that, so that there is
/// always a reserve above it, and what needs it goes on.
enum class Lowering : std::uint8_t { at_once, with_use };

/// A number of bytes, which may have to become lower.
class SinkingLimit {
 public:
  explicit SinkingLimit(std::uint64_t bytes) : bytes_(bytes), wanted_bytes_(bytes) {}
  operator std::uint64_t() const { return bytes_; }

  void set(std::uint64_t bytes, std::uint64_t used_bytes, Lowering lowering) {
    wanted_bytes_ = bytes;
    if (lowering == Lowering::at_once || bytes > bytes_) bytes_ = bytes;
    follow(used_bytes);
  }
  /// Less is used now.
  void follow(std::uint64_t used_bytes) {
    if (bytes_ > wanted_bytes_) bytes_ = std::max(wanted_bytes_, std::min(bytes_, used_bytes));
  }

 private:
  std::uint64_t bytes_;
  std::uint64_t wanted_bytes_;
};

class Quota;

/// The quota that refuses, and what it may have.
struct QuotaRefusal {
  const Quota& quota;
  std::uint64_t bytes_max;
  bool is_share;                ///< no limit, but less, because others want it too
  bool is_of_identity = false;  ///< the limit of a unit
};

/// Counts bytes against a limit, and against those of others: of a parent, which has all bytes of
/// several quotas, and of one that stands beside it. Charged where memory is taken, released where
/// it is given back.
///
///     account -> namespace -> server      the parents
///        `-----> unit                     beside the account; its limit is that of an identity
///                  `-----> guests         of a port of TCPStore: all ports have one limit
///
/// Above the limit is a reserve of an eighth of it, for what must go on when values are refused.
/// Units share both, and the accounts of a unit share what it has:
///
/// - As soon as there are two units, the last eighth below the limit is for those that have less
///   than their part of it. What a unit above its part takes there is of the reserve, too: up to
///   half of the reserve it leaves those below theirs as much as there was.
/// - A unit takes of the reserve as much as it leaves free.
/// - Values of units below their part may take a quarter of the reserve, all together: so a unit
///   that arrives when memory is full may still write.
class Quota {
 public:
  /// freed  of the root: where long memory is given back in pieces; it outlives the quota. Where
  ///        there is none, memory is freed at once
  explicit Quota(std::uint64_t limit_bytes, Quota* parent = nullptr, Quota* beside = nullptr,
                 FreedMemory* freed = nullptr)
      : limit_bytes_(limit_bytes), parent_(parent), beside_(beside), freed_memory_(freed) {}
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  /// False, and nothing is charged, when a limit would be passed, or a share.
  bool charge(std::uint64_t bytes);
  /// As `charge`, with the reserve: for what serves groups and reads, which go on when writes are
  /// refused, but not for ever.
  bool charge_reserve(std::uint64_t bytes);
  /// Whether `charge_reserve` would charge them.
  bool has_reserve(std::uint64_t bytes) const;
  /// Charges even past the limit: for what frees memory or must not fail.
  void charge_always(std::uint64_t bytes);
  bool charge(std::uint64_t bytes, Charging charging);
  /// Whether `bytes` more would not pass the share of the unit, or of the account. There are shares
  /// only where little is left.
  bool has_share(std::uint64_t bytes) const { return over_its_share(bytes) == nullptr; }
  /// Whether the unit has all of the reserve that it may have while others take nothing of it.
  bool has_spent_its_reserve() const {
    return beside_ != nullptr && 2 * beside_->from_reserve_bytes_ >= root().reserve_bytes();
  }
  /// How much more is there for this unit, whatever others do. 0 when there are no others.
  std::uint64_t assured_bytes() const;
  void release(std::uint64_t bytes);
  /// Frees memory of std::malloc's, also null. Long memory goes to the root's `FreedMemory`.
  ///
  /// bytes  that were used of it
  void give_back(char* memory, std::size_t bytes);
  /// Of what the root's `FreedMemory` keeps; it is not charged yet.
  FreedMemory::Taken take_freed(std::size_t bytes);
  /// Whether `charge` would refuse even nothing.
  bool is_passed() const {
    if (is_short_ || used_bytes_ > limit_bytes_) return true;
    return parent_ != nullptr && parent_->is_passed();
  }

  /// What is charged here is charged to `parent`, too, which outlives this. Nothing is yet.
  void set_parent(Quota& parent) { parent_ = &parent; }
  /// What is charged already stays so.
  void set_limit(std::uint64_t limit_bytes, Lowering lowering = Lowering::at_once) {
    limit_bytes_.set(limit_bytes, used_bytes_, lowering);
  }

  std::uint64_t used_bytes() const { return used_bytes_; }
  std::uint64_t limit_bytes() const { return limit_bytes_; }
  std::uint64_t reserve_bytes() const { return limit_bytes_ / 8; }
  /// The part of the limit that each sharer may have.
  std::uint64_t part_bytes() const {
    return limit_bytes_ / std::max(sharers_count_, std::uint32_t{1});
  }
  /// How much is left up to the end of the reserve.
  std::uint64_t left_bytes() const {
    const std::uint64_t end_bytes = limit_bytes_ + reserve_bytes();
    return used_bytes_ < end_bytes ? end_bytes - used_bytes_ : 0;
  }
  /// How much of the reserve is in use.
  std::uint64_t used_reserve_bytes() const {
    return used_bytes_ > limit_bytes_ ? used_bytes_ - limit_bytes_ : 0;
  }
  /// Who of this and the others refuses `bytes` more.
  QuotaRefusal refusing(std::uint64_t bytes) const;
  /// Of the root: from now on `count_refusal` counts there; it outlives the quota.
  void count_refusals_in(Refusals& refusals) { refusals_ = &refusals; }
  /// Something was refused, and somebody is told so.
  void count_refusal(Limit limit) const {
    if (Refusals* const refusals = root().refusals_) refusals->count(limit);
  }
  /// The one that has all bytes.
  const Quota& root() const;
  Quota& root();

  /// The server's quota is shared by units, and a unit's by its accounts.
  void add_sharer() { ++sharers_count_; }
  void remove_sharer() { --sharers_count_; }
  bool is_shared() const { return sharers_count_ > 1; }

  /// The system itself has no memory: as long as that is so, `charge` refuses.
  void set_short(bool is_short);
  bool is_short() const;

 private:
  bool has_room(std::uint64_t bytes, std::uint64_t lent_bytes = 0) const;
  std::uint64_t lent_bytes() const;
  std::uint64_t borrowable_bytes() const;
  bool may_borrow(std::uint64_t bytes) const;
  bool is_plenty(std::uint64_t bytes) const;
  const Quota* over_its_share(std::uint64_t bytes) const;
  const Quota* full_beside(std::uint64_t bytes) const;
  std::uint64_t of_reserve(std::uint64_t bytes) const;
  void add(std::uint64_t bytes);

  std::uint32_t sharers_count_ = 0;
  std::uint64_t used_bytes_ = 0;
  SinkingLimit limit_bytes_;
  Quota* parent_;
  Quota* beside_;
  FreedMemory* freed_memory_;     ///< of the root
  Refusals* refusals_ = nullptr;  ///< likewise
  /// Of the root's reserve; what is released pays it back. Of the root: what units have of it.
  std::uint64_t from_reserve_bytes_ = 0;
  /// Values in the reserve; what is released pays it back first. Of the root: those of all units.
  std::uint64_t borrowed_bytes_ = 0;
  bool is_short_ = false;
};

}  // namespace muster::core
