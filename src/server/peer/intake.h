#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "core/memory/charged_memory.h"
#include "core/memory/payload.h"

namespace muster::server {

/// What has come from one peer and is not handled yet: requests one behind the other, that are cut
/// off where they lie. What does not lie within one piece, or has to wait, is stored as it comes,
/// charged to the quota. Who derives from it knows where a request ends.
class Intake {
 public:
  /// The quota outlives the intake.
  explicit Intake(core::Quota& quota) : quota_(&quota), memory_(quota) {}
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  core::Quota& quota() const { return *quota_; }
  /// Whether who is charged has a part of what is left for so many bytes more.
  bool has_share(std::uint64_t bytes) const { return quota_->has_share(bytes); }
  std::uint64_t assured_bytes() const { return quota_->assured_bytes(); }
  bool has_spent_its_reserve() const { return quota_->has_spent_its_reserve(); }
  /// From now on what is stored is charged to another quota, which outlives what is stored.
  void charge_to(core::Quota& quota) {
    quota_ = &quota;
    memory_.charge_to(quota);
  }

  /// Bytes have come, valid until no request is whole any more or `keep` was called.
  void give(std::string_view bytes);

  /// The request that was cut off last comes again; nothing else was called meanwhile.
  void put_back();

  /// The memory in which the request lies that was cut off last, if nothing else does.
  core::ChargedMemory* memory_of_last() { return is_last_alone() ? &memory_ : nullptr; }

  /// Stores what was given and not yet cut off, for later.
  void keep();

  std::uint64_t stored_bytes() const { return end_ - begin_; }
  /// Of the bytes that come next, how many are dropped.
  std::uint64_t skipped_bytes() const { return skip_bytes_; }
  /// Whether nothing is there that was not cut off.
  bool empty() const { return given_.empty() && begin_ + cut_bytes_ == end_; }

 protected:
  ~Intake() = default;

  /// What was given and lies elsewhere, behind what is stored.
  std::string_view given() const { return given_; }
  std::string_view stored() const { return {memory_.begin() + begin_, end_ - begin_}; }
  /// Of what is stored.
  std::string_view not_cut() const {
    return memory_.size_bytes() != 0 ? stored().substr(cut_bytes_) : std::string_view{};
  }

  /// Forgets the request that was cut off last. Who took its memory over has left none.
  void drop_cut() {
    if (memory_.size_bytes() == 0) begin_ = end_ = cut_bytes_ = 0;
    begin_ += std::exchange(cut_bytes_, 0);
    if (begin_ == end_ && memory_.size_bytes() != 0) release();
  }
  /// The next request is the first `bytes` of what is stored; of what was given, of which nothing
  /// is stored.
  void cut_stored(std::size_t bytes) { cut_bytes_ = bytes; }
  void cut_given(std::size_t bytes) {
    given_cut_bytes_ = bytes;
    given_.remove_prefix(bytes);
  }

  /// Moves up to `count` given bytes to the stored ones, of a request of `expected_bytes`.
  bool store(std::size_t count, std::size_t expected_bytes, core::Charging charging);
  /// Where at most `left` bytes are best put that follow what is stored, to be given from there, if
  /// those are many on both sides. Empty: anywhere else.
  std::span<char> room_for(std::size_t left);
  /// Drops all that is stored, and so many bytes more.
  void skip(std::size_t more_bytes);

 private:
  bool is_last_alone() const { return cut_bytes_ != 0 && begin_ + cut_bytes_ == end_; }
  bool grow(std::size_t bytes, std::size_t expected_bytes, core::Charging charging);
  std::size_t bytes_always(std::size_t request_bytes, core::Charging charging) const;
  void release();
  void skip_given();

  core::Quota* quota_;
  std::string_view given_;
  core::ChargedMemory memory_;
  std::size_t begin_ = 0;  ///< of what is stored and not yet cut off
  std::size_t end_ = 0;
  std::size_t cut_bytes_ = 0;        ///< of the stored request that was cut off last
  std::size_t given_cut_bytes_ = 0;  ///< of the one that was cut off where it was given
  std::size_t skip_bytes_ = 0;       ///< still to come
};

}  // namespace muster::server
