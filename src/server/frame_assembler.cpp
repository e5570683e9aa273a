#include "server/frame_assembler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/operation.h"
#include "wire/request.h"

namespace muster::server {
namespace {

using wire::frame_header_bytes;

constexpr std::size_t uncharged_refusal_bytes = 8 * 1024;  // a frame's first bytes always fit
constexpr std::size_t first_capacity_bytes = 1024;
constexpr std::size_t room_bytes_min = 16 * 1024;  // for less it is not worth while

/// Whether the frame may be refused for want of memory: one that brings something to keep. What
/// reads, removes, acknowledges or proves life goes on.
bool is_write(const wire::FrameHeader& header) {
  if (header.type != wire::FrameType::request) return false;
  switch (static_cast<wire::Operation>(header.code)) {
    case wire::Operation::get:
    case wire::Operation::take:
    case wire::Operation::remove:
    case wire::Operation::exists:
    case wire::Operation::wait:
    case wire::Operation::multi_get:
    case wire::Operation::list:
    case wire::Operation::receive:
    case wire::Operation::recover: return false;
    default: return true;
  }
}

}  // namespace

FrameAssembler::FrameAssembler(core::Quota& quota, std::uint32_t body_bytes_max)
    : quota_(quota), body_bytes_max_(body_bytes_max), memory_(quota) {}

void FrameAssembler::give(std::string_view bytes) {
  drop_cut();
  if (!bytes.empty() && bytes.data() == memory_.begin() + end_) {
    end_ += bytes.size();
    bytes = {};
  }
  given_ = bytes;
  skip_given();
}

Result<FrameAssembler::Next> FrameAssembler::next() {
  drop_cut();
  if (begin_ != end_) return cut_stored();
  Result<std::optional<wire::Frame>> frame = wire::cut_frame(given_, body_bytes_max_);
  if (!frame) return std::move(frame).error();
  if (*frame) {
    given_.remove_prefix(frame_header_bytes + (*frame)->body.size());
    return Next(**frame);
  }
  if (given_.empty()) return Next(Incomplete{});
  return cut_stored();
}

/// Completes the frame that is stored in part, from what was given.
Result<FrameAssembler::Next> FrameAssembler::cut_stored() {
  for (;;) {
    Result<std::optional<wire::Frame>> frame = wire::cut_frame(stored(), body_bytes_max_);
    if (!frame) return std::move(frame).error();
    if (*frame) {
      cut_bytes_ = frame_header_bytes + (*frame)->body.size();
      return Next(**frame);
    }
    if (given_.empty()) return Next(Incomplete{});
    if (stored().size() < frame_header_bytes) {
      store(frame_header_bytes - stored().size(), first_capacity_bytes, true);
      continue;
    }
    const wire::FrameHeader header = wire::decode_frame_header(stored());
    const std::size_t frame_bytes = frame_header_bytes + header.body_bytes;
    if (!store(frame_bytes - stored().size(), frame_bytes, !is_write(header))) {
      return Next(skip(header));
    }
  }
}

/// Moves up to `count` given bytes to the stored ones.
bool FrameAssembler::store(std::size_t count, std::size_t expected_bytes, bool is_essential) {
  count = std::min(count, given_.size());
  if (!grow(stored().size() + count, expected_bytes, is_essential)) return false;
  std::memcpy(memory_.begin() + end_, given_.data(), count);
  end_ += count;
  given_.remove_prefix(count);
  return true;
}

/// Makes room for `bytes` from `begin_` on. Memory doubles with what has come, so that a peer that
/// declares much and sends little takes little; after a sixteenth of a frame all of it is taken at
/// once, since what is moved to where there is more room is copied most often.
bool FrameAssembler::grow(std::size_t bytes, std::size_t expected_bytes, bool is_essential) {
  if (bytes <= memory_.capacity_bytes() - begin_) return true;
  if (begin_ != 0) {
    std::memmove(memory_.begin(), memory_.begin() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (bytes <= memory_.capacity_bytes()) return true;
  }
  const bool is_under_way = end_ >= expected_bytes / 16;
  const std::size_t doubled = std::max(2 * memory_.capacity_bytes(), first_capacity_bytes);
  const std::size_t wanted = is_under_way ? expected_bytes : std::min(doubled, expected_bytes);
  const std::size_t capacity = std::max(bytes, wanted);
  const bool is_granted = is_essential || capacity <= uncharged_refusal_bytes;
  return memory_.grow(capacity, is_granted ? core::Charging::always : core::Charging::normal);
}

std::span<char> FrameAssembler::room() {
  drop_cut();
  if (!given_.empty() || stored().size() < room_bytes_min) return {};
  const wire::FrameHeader header = wire::decode_frame_header(stored());
  const std::size_t frame_bytes = frame_header_bytes + header.body_bytes;
  if (header.body_bytes > body_bytes_max_ || frame_bytes < stored().size() + room_bytes_min) {
    return {};
  }
  const std::size_t left = frame_bytes - stored().size();
  const std::size_t free_bytes = memory_.capacity_bytes() - end_;
  const bool has_room = free_bytes >= std::min(left, room_bytes_min) ||
                        grow(stored().size() + room_bytes_min, frame_bytes, false);
  if (!has_room) return {};
  return {memory_.begin() + end_, std::min(left, memory_.capacity_bytes() - end_)};
}

/// Who took the memory over has left none.
void FrameAssembler::drop_cut() {
  if (memory_.capacity_bytes() == 0) begin_ = end_ = cut_bytes_ = 0;
  begin_ += std::exchange(cut_bytes_, 0);
  if (begin_ == end_ && memory_.capacity_bytes() != 0) release();
}

void FrameAssembler::release() {
  memory_.release();
  begin_ = end_ = 0;
}

FrameAssembler::Unstorable FrameAssembler::skip(const wire::FrameHeader& header) {
  Unstorable unstorable;
  unstorable.header = header;
  const wire::Frame begun{header, stored().substr(frame_header_bytes)};
  if (!wire::decode_ids(begun, unstorable.acknowledged)) unstorable.acknowledged.clear();
  unstorable.is_of_system = quota_.is_short();
  unstorable.limit_bytes = quota_.limit_bytes();
  unstorable.used_bytes = quota_.used_bytes();
  skip_bytes_ = frame_header_bytes + header.body_bytes - stored().size();
  release();
  skip_given();
  return unstorable;
}

void FrameAssembler::skip_given() {
  const std::size_t skipped = std::min(skip_bytes_, given_.size());
  skip_bytes_ -= skipped;
  given_.remove_prefix(skipped);
}

void FrameAssembler::keep() {
  drop_cut();
  if (!given_.empty()) store(given_.size(), stored().size() + given_.size(), true);
}

}  // namespace muster::server
