#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/memory/charged_memory.h"
#include "muster/result.h"
#include "wire/frame.h"

namespace muster::server {

struct FrameLimits {
  std::uint32_t body_bytes_max = 0;
  /// Of what goes on when memory is out.
  std::uint32_t essential_bytes_max = 0;
};

/// Puts the frames of one peer together from the pieces in which its bytes arrive.
///
/// A frame that lies within one piece is handed on where it lies. Of others the bytes are stored
/// as they come, charged to the quota; a declared length alone takes no memory. A long frame may be
/// read to where it is stored, and taken over from there.
class FrameAssembler {
 public:
  /// The next frame needs bytes that have not come.
  struct Incomplete {};
  /// There is no memory for a request: its bytes are dropped as they come.
  struct Unstorable {
    wire::FrameHeader header;
    std::vector<std::uint64_t> acknowledged;  ///< by the request
    Error why;
  };
  using Next = std::variant<Incomplete, wire::Frame, Unstorable>;

  /// The quota outlives the assembler.
  FrameAssembler(core::Quota& quota, const FrameLimits& limits);
  FrameAssembler(const FrameAssembler&) = delete;
  FrameAssembler& operator=(const FrameAssembler&) = delete;

  /// Whether who is charged has a part of what is left for so many bytes more.
  bool has_share(std::uint64_t bytes) const { return quota_->has_share(bytes); }
  std::uint64_t assured_bytes() const { return quota_->assured_bytes(); }
  bool has_spent_its_reserve() const { return quota_->has_spent_its_reserve(); }
  /// From now on what is stored is charged to another quota, which outlives what is stored.
  void charge_to(core::Quota& quota) {
    quota_ = &quota;
    memory_.charge_to(quota);
  }

  /// Bytes have come, valid until `next` has found no complete frame or `keep` was called.
  void give(std::string_view bytes);

  /// Where the next bytes are best put, to be given from there: of a long frame, of which much is
  /// still to come, behind what has come. Empty: anywhere else. Valid until anything else is
  /// called.
  std::span<char> room();

  /// The next frame, valid until the next call.
  ///
  /// errors  too_large, protocol_error, resource_exhausted: there is no next frame, ever
  Result<Next> next();

  /// The frame that was handed out last comes again; nothing else was called meanwhile.
  void put_back();

  /// The memory in which the frame lies that was handed out last, if nothing else does.
  core::ChargedMemory* memory_of_frame() { return is_frame_alone() ? &memory_ : nullptr; }

  /// Whether no frame has come whole: `next` only stores what was given, or refuses it.
  bool has_part_only() const;

  /// Stores what was given and not yet cut, for later.
  void keep();

  std::uint64_t stored_bytes() const { return end_ - begin_; }
  /// Of the bytes that come next, how many are dropped.
  std::uint64_t skipped_bytes() const { return skip_bytes_; }
  /// Whether nothing is there that was not handed out.
  bool empty() const { return given_.empty() && begin_ + cut_bytes_ == end_; }

 private:
  std::string_view stored() const { return {memory_.begin() + begin_, end_ - begin_}; }
  std::string_view not_cut() const { return stored().substr(cut_bytes_); }
  bool is_frame_alone() const { return cut_bytes_ != 0 && begin_ + cut_bytes_ == end_; }
  void drop_cut();
  Result<Next> cut_stored();
  bool store(std::size_t count, std::size_t expected_bytes, core::Charging charging);
  bool grow(std::size_t bytes, std::size_t expected_bytes, core::Charging charging);
  std::size_t bytes_always(std::size_t frame_bytes, core::Charging charging) const;
  void release();
  Error too_long(const wire::FrameHeader& header) const;
  Error no_room(const wire::FrameHeader& header) const;
  Unstorable skip(const wire::FrameHeader& header);
  void skip_given();

  core::Quota* quota_;
  const FrameLimits limits_;
  std::string_view given_;
  core::ChargedMemory memory_;
  std::size_t begin_ = 0;  ///< of what is stored and not yet cut
  std::size_t end_ = 0;
  std::size_t cut_bytes_ = 0;        ///< of the stored frame that was handed out last
  std::size_t given_cut_bytes_ = 0;  ///< of the one that was handed out where it was given
  std::size_t skip_bytes_ = 0;       ///< of an unstorable frame, still to come
};

}  // namespace muster::server
