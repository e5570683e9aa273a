#include "core/memory/quota.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>

namespace muster::core {
namespace {

/// The part of `bytes` that each sharer may have.
std::uint64_t part_of(std::uint64_t bytes, std::uint32_t sharers_count) {
  return bytes / std::max(sharers_count, std::uint32_t{1});
}

}  // namespace

/// The first quota beside an account, or above that one, that would pass its limit by `bytes` more.
/// Null: there is none.
const Quota* Quota::full_beside(std::uint64_t bytes) const {
  for (const Quota* quota = beside_; quota != nullptr; quota = quota->parent_) {
    if (quota->used_bytes_ + bytes > quota->limit_bytes_) return quota;
  }
  return nullptr;
}

/// lent_bytes  of the root's reserve, on top of a limit that is no lower than the root's
bool Quota::has_room(std::uint64_t bytes, std::uint64_t lent_bytes) const {
  if (is_short_) return false;
  if (limit_bytes_ < root().limit_bytes_) lent_bytes = 0;
  const std::uint64_t end_bytes = limit_bytes_ + std::min(lent_bytes, ~limit_bytes_);
  return used_bytes_ <= end_bytes && bytes <= end_bytes - used_bytes_;
}

Quota& Quota::root() {
  Quota* quota = this;
  while (quota->parent_ != nullptr) quota = quota->parent_;
  return *quota;
}

const Quota& Quota::root() const {
  const Quota* quota = this;
  while (quota->parent_ != nullptr) quota = quota->parent_;
  return *quota;
}

/// Where little is left, and others want it too: the one of this and its unit that would pass its
/// share. Null: neither.
const Quota* Quota::over_its_share(std::uint64_t bytes) const {
  if (beside_ == nullptr) return nullptr;
  const Quota& all = root();
  if (all.used_bytes_ + bytes <= all.limit_bytes_ - all.reserve_bytes()) return nullptr;
  const std::uint64_t share_bytes = all.part_bytes();
  if (all.is_shared() && beside_->used_bytes_ + bytes > share_bytes) return beside_;
  if (!beside_->is_shared()) return nullptr;
  return used_bytes_ + bytes > part_of(share_bytes, beside_->sharers_count_) ? this : nullptr;
}

/// What others have of the reserve does not count against a unit below its share, up to half of the
/// reserve: the other half is left for groups. A unit above its share has no values here.
std::uint64_t Quota::lent_bytes() const {
  if (beside_ == nullptr) return 0;
  const Quota& all = root();
  return std::min(all.from_reserve_bytes_ - beside_->from_reserve_bytes_, all.reserve_bytes() / 2);
}

std::uint64_t Quota::assured_bytes() const {
  const Quota& all = root();
  if (beside_ == nullptr || !all.is_shared() || all.is_short_) return 0;
  const std::uint64_t end_bytes = all.limit_bytes_ + lent_bytes();
  const std::uint64_t own_bytes = std::min(all.part_bytes(), beside_->limit_bytes());
  const std::uint64_t left_bytes = end_bytes - std::min(all.used_bytes_, end_bytes);
  return std::min(std::max(left_bytes, all.borrowable_bytes()),
                  own_bytes - std::min(beside_->used_bytes_, own_bytes));
}

/// Of the root: what values of units below their part may still take of the reserve. What was
/// borrowed counts only as far as memory is above its limit.
std::uint64_t Quota::borrowable_bytes() const {
  const std::uint64_t bytes_max = reserve_bytes() / 4;
  const std::uint64_t borrowed_bytes = std::min(borrowed_bytes_, used_reserve_bytes());
  return std::min(left_bytes(), bytes_max - std::min(borrowed_bytes, bytes_max));
}

/// Whether values of `bytes` may be put into the reserve. A unit above its part has none there.
bool Quota::may_borrow(std::uint64_t bytes) const {
  const Quota& all = root();
  if (beside_ == nullptr || !all.is_shared() || all.is_short_) return false;
  for (const Quota* quota = this; quota != &all; quota = quota->parent_) {
    const bool is_lower = quota->limit_bytes_ < all.limit_bytes_;
    if (is_lower && !quota->has_room(bytes)) return false;
  }
  return bytes <= all.borrowable_bytes() && has_share(bytes);
}

/// Whether nobody need look at shares or the reserve.
bool Quota::is_plenty(std::uint64_t bytes) const {
  if (beside_ != nullptr) {
    const bool is_below = beside_->used_bytes_ + bytes <= beside_->limit_bytes_;
    if (!is_below || (beside_->parent_ != nullptr && full_beside(bytes) != nullptr)) return false;
  }
  const Quota* quota = this;
  for (; quota->parent_ != nullptr; quota = quota->parent_) {
    if (quota->used_bytes_ + bytes > quota->limit_bytes_) return false;
  }
  // The root refuses what is so much that a sum above has come round.
  const std::uint64_t plenty_bytes = quota->limit_bytes_ - quota->reserve_bytes();
  return !quota->is_short_ && bytes <= plenty_bytes && quota->used_bytes_ + bytes <= plenty_bytes;
}

bool Quota::charge(std::uint64_t bytes) {
  if (is_plenty(bytes)) {
    add(bytes);
    return true;
  }
  if (full_beside(bytes) != nullptr) return false;
  const std::uint64_t lent = lent_bytes();
  bool has_all_room = true;
  for (const Quota* quota = this; quota != nullptr; quota = quota->parent_) {
    has_all_room = has_all_room && quota->has_room(bytes, lent);
  }
  if (has_all_room ? !has_share(bytes) : !may_borrow(bytes)) return false;
  add(bytes);
  if (has_all_room) return true;
  borrowed_bytes_ += bytes;
  root().borrowed_bytes_ += bytes;
  return true;
}

/// What of `bytes` more is taken from the reserve: what is above the limit and, of who is above its
/// share, what is in the last eighth below it, which is kept for others.
std::uint64_t Quota::of_reserve(std::uint64_t bytes) const {
  const Quota& all = root();
  if (all.used_bytes_ + bytes <= all.limit_bytes_ - all.reserve_bytes()) return 0;
  const std::uint64_t kept_bytes = !has_share(bytes) ? all.reserve_bytes() : 0;
  const std::uint64_t after_bytes = all.used_bytes_ + bytes + kept_bytes;
  return after_bytes > all.limit_bytes_ ? std::min(bytes, after_bytes - all.limit_bytes_) : 0;
}

bool Quota::has_reserve(std::uint64_t bytes) const {
  if (is_plenty(bytes)) return true;
  const auto has_left = [bytes](const Quota& quota) {
    const std::uint64_t limit = quota.limit_bytes_ + quota.reserve_bytes();
    return quota.used_bytes_ <= limit && bytes <= limit - quota.used_bytes_;
  };
  for (const Quota* quota = this; quota != nullptr; quota = quota->parent_) {
    if (!has_left(*quota)) return false;
  }
  if (beside_ == nullptr) return true;
  if (!has_left(*beside_)) return false;
  const std::uint64_t wanted_bytes = of_reserve(bytes);
  if (wanted_bytes == 0) return true;
  const Quota& all = root();
  // What units above their share have of it below the limit is nothing to those that are not.
  const std::uint64_t taken_bytes = std::max(
      all.used_reserve_bytes(), !has_share(bytes) ? all.from_reserve_bytes_ : std::uint64_t{0});
  const std::uint64_t free_bytes = all.reserve_bytes() - std::min(taken_bytes, all.reserve_bytes());
  if (beside_->from_reserve_bytes_ + wanted_bytes > free_bytes) return false;
  return from_reserve_bytes_ + wanted_bytes <= free_bytes - beside_->from_reserve_bytes_;
}

bool Quota::charge_reserve(std::uint64_t bytes) {
  if (is_plenty(bytes)) {
    add(bytes);
    return true;
  }
  if (!has_reserve(bytes)) return false;
  charge_always(bytes);
  return true;
}

void Quota::add(std::uint64_t bytes) {
  for (Quota* quota = this; quota != nullptr; quota = quota->parent_) quota->used_bytes_ += bytes;
  if (beside_ == nullptr) return;
  beside_->used_bytes_ += bytes;
  if (beside_->parent_ != nullptr) beside_->parent_->used_bytes_ += bytes;
}

/// What is charged last is what the reserve has given.
void Quota::charge_always(std::uint64_t bytes) {
  const std::uint64_t given_bytes = beside_ != nullptr ? of_reserve(bytes) : 0;
  add(bytes);
  if (given_bytes == 0) return;
  from_reserve_bytes_ += given_bytes;
  beside_->from_reserve_bytes_ += given_bytes;
  root().from_reserve_bytes_ += given_bytes;
}

bool Quota::charge(std::uint64_t bytes, Charging charging) {
  if (charging == Charging::normal) return charge(bytes);
  if (charging == Charging::reserve) return charge_reserve(bytes);
  charge_always(bytes);
  return true;
}

void Quota::release(std::uint64_t bytes) {
  for (Quota* quota = this; quota != nullptr; quota = quota->parent_) {
    assert(quota->used_bytes_ >= bytes);
    quota->used_bytes_ -= bytes;
    quota->limit_bytes_.follow(quota->used_bytes_);
  }
  if (beside_ != nullptr) {
    beside_->used_bytes_ -= bytes;
    if (beside_->parent_ != nullptr) beside_->parent_->used_bytes_ -= bytes;
  }
  if (borrowed_bytes_ != 0 && beside_ != nullptr) {
    const std::uint64_t returned_bytes = std::min(borrowed_bytes_, bytes);
    borrowed_bytes_ -= returned_bytes;
    root().borrowed_bytes_ -= returned_bytes;
  }
  if (beside_ == nullptr || from_reserve_bytes_ == 0) return;
  const std::uint64_t paid_bytes = std::min(from_reserve_bytes_, bytes);
  from_reserve_bytes_ -= paid_bytes;
  beside_->from_reserve_bytes_ -= paid_bytes;
  root().from_reserve_bytes_ -= paid_bytes;
}

/// A limit that is no lower than the root's is not what has to be raised.
QuotaRefusal Quota::refusing(std::uint64_t bytes) const {
  if (const Quota* const full = full_beside(bytes)) return {*full, full->limit_bytes_, false, true};
  const Quota& all = root();
  for (const Quota* quota = this; quota != &all; quota = quota->parent_) {
    const bool is_lower = quota->limit_bytes_ < all.limit_bytes_;
    if (is_lower && !quota->has_room(bytes)) return {*quota, quota->limit_bytes_, false};
  }
  const Quota* const sharer = all.has_room(bytes) ? over_its_share(bytes) : nullptr;
  if (sharer == nullptr) return {all, all.limit_bytes_, false};
  const std::uint64_t of_unit_bytes = all.part_bytes();
  return {*sharer, sharer == this ? part_of(of_unit_bytes, beside_->sharers_count_) : of_unit_bytes,
          true};
}

void Quota::give_back(char* memory, std::size_t bytes) {
  const Quota& all = root();
  FreedMemory* const freed = all.freed_memory_;
  if (freed == nullptr || bytes < FreedMemory::long_bytes_min) return std::free(memory);
  const bool may_keep =
      !all.is_short_ && all.used_bytes_ + freed->kept_bytes() + bytes <= all.limit_bytes_;
  if (may_keep) return freed->add_to_keep(memory, bytes);
  freed->add(memory, bytes);
}

FreedMemory::Taken Quota::take_freed(std::size_t bytes) {
  FreedMemory* const freed = root().freed_memory_;
  return freed != nullptr ? freed->take(bytes) : FreedMemory::Taken{};
}

/// What was not given back yet is needed now.
void Quota::set_short(bool is_short) {
  Quota& all = root();
  all.is_short_ = is_short;
  if (is_short && all.freed_memory_ != nullptr) all.freed_memory_->give_all_back();
}

bool Quota::is_short() const { return root().is_short_; }

}  // namespace muster::core
