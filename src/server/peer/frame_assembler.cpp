#include "server/peer/frame_assembler.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/memory/frame_charging.h"
#include "core/session/failure.h"
#include "wire/request.h"

namespace muster::server {
namespace {

using core::Charging;
using wire::frame_header_bytes;

constexpr std::size_t first_bytes = 1024;
constexpr std::size_t room_bytes_min = 16 * 1024;  // for less it is not worth while

}  // namespace

FrameAssembler::FrameAssembler(core::Quota& quota, const FrameLimits& limits)
    : quota_(&quota), limits_(limits), memory_(quota) {}

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
  Result<std::optional<wire::Frame>> frame = wire::cut_frame(given_, limits_.body_bytes_max);
  if (!frame.has_value()) return std::move(frame).error();
  if (*frame) {
    given_cut_bytes_ = frame_header_bytes + (*frame)->body.size();
    given_.remove_prefix(given_cut_bytes_);
    return Next(**frame);
  }
  if (given_.empty()) return Next(Incomplete{});
  return cut_stored();
}

void FrameAssembler::put_back() {
  if (std::exchange(cut_bytes_, 0) != 0) return;
  given_ = {given_.data() - given_cut_bytes_, given_.size() + given_cut_bytes_};
}

/// Completes the frame that is stored in part, from what was given.
Result<FrameAssembler::Next> FrameAssembler::cut_stored() {
  for (;;) {
    Result<std::optional<wire::Frame>> frame = wire::cut_frame(stored(), limits_.body_bytes_max);
    if (!frame.has_value()) return std::move(frame).error();
    if (*frame) {
      cut_bytes_ = frame_header_bytes + (*frame)->body.size();
      return Next(**frame);
    }
    // A header that comes alone may be refused.
    if (given_.empty() && stored().size() != frame_header_bytes) return Next(Incomplete{});
    if (stored().size() < frame_header_bytes) {
      store(frame_header_bytes - stored().size(), first_bytes, Charging::always);
      continue;
    }
    const wire::FrameHeader header = wire::decode_frame_header(stored());
    const std::size_t frame_bytes = frame_header_bytes + header.body_bytes;
    const bool is_request = header.type == wire::FrameType::request;
    if (!is_request && header.body_bytes > limits_.essential_bytes_max) return too_long(header);
    if (given_.empty()) return Next(Incomplete{});
    const Charging charging = core::charging_of(header, limits_.essential_bytes_max);
    if (store(frame_bytes - stored().size(), frame_bytes, charging)) continue;
    if (!is_request) return no_room(header);
    return Next(skip(header));
  }
}

Error FrameAssembler::too_long(const wire::FrameHeader& header) const {
  Error error;
  error.code = ErrorCode::too_large;
  error.detail = "a frame without a request declares more than is allowed";
  error.actual = header.body_bytes;
  error.limit = limits_.essential_bytes_max;
  return error;
}

Error FrameAssembler::no_room(const wire::FrameHeader& header) const {
  Error error;
  error.code = ErrorCode::resource_exhausted;
  error.detail = "memory_bytes_max is reached, and a frame without a request is long";
  error.actual = header.body_bytes;
  error.limit = core::freeing_body_bytes_always;
  return error;
}

/// Moves up to `count` given bytes to the stored ones.
bool FrameAssembler::store(std::size_t count, std::size_t expected_bytes, Charging charging) {
  count = std::min(count, given_.size());
  if (!grow(stored().size() + count, expected_bytes, charging)) return false;
  std::memcpy(memory_.begin() + end_, given_.data(), count);
  end_ += count;
  given_.remove_prefix(count);
  return true;
}

/// Makes room for `bytes` from `begin_` on. Memory doubles with what has come, so that a peer that
/// declares much and sends little takes little. After a sixteenth of a frame it lies where all of
/// it has room.
bool FrameAssembler::grow(std::size_t bytes, std::size_t expected_bytes, Charging charging) {
  if (bytes <= memory_.size_bytes() - begin_) return true;
  if (begin_ != 0) {
    std::memmove(memory_.begin(), memory_.begin() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (bytes <= memory_.size_bytes()) return true;
  }
  const std::size_t doubled = std::max(2 * memory_.size_bytes(), first_bytes);
  const std::size_t size_bytes = std::max(bytes, std::min(doubled, expected_bytes));
  const std::size_t later_bytes = end_ >= expected_bytes / 16 ? expected_bytes : size_bytes;
  if (size_bytes <= bytes_always(expected_bytes, charging)) charging = Charging::always;
  return memory_.grow(size_bytes, later_bytes, charging);
}

/// How much of a frame is stored, whatever the quota says.
std::size_t FrameAssembler::bytes_always(std::size_t frame_bytes, Charging charging) const {
  if (charging == Charging::normal && !has_share(frame_bytes)) return 0;
  return has_spent_its_reserve() ? core::frame_read_bytes_min : core::frame_bytes_always;
}

std::span<char> FrameAssembler::room() {
  drop_cut();
  if (!given_.empty() || stored().size() < room_bytes_min) return {};
  const wire::FrameHeader header = wire::decode_frame_header(stored());
  const std::size_t frame_bytes = frame_header_bytes + header.body_bytes;
  if (header.body_bytes > limits_.body_bytes_max ||
      frame_bytes < stored().size() + room_bytes_min) {
    return {};
  }
  const bool has_room = memory_.size_bytes() - end_ >= room_bytes_min ||
                        grow(stored().size() + room_bytes_min, frame_bytes, Charging::normal);
  if (!has_room) return {};
  const std::size_t left = frame_bytes - stored().size();
  return {memory_.begin() + end_, std::min(left, memory_.size_bytes() - end_)};
}

bool FrameAssembler::has_part_only() const {
  const std::string_view first = memory_.size_bytes() != 0 ? not_cut() : std::string_view{};
  const std::size_t bytes = first.size() + given_.size();
  if (bytes < frame_header_bytes) return true;
  std::array<char, frame_header_bytes> header;
  const std::size_t of_first = first.copy(header.data(), header.size());
  given_.copy(header.data() + of_first, header.size() - of_first);
  return bytes - frame_header_bytes <
         wire::decode_frame_header({header.data(), header.size()}).body_bytes;
}

/// Who took the memory over has left none.
void FrameAssembler::drop_cut() {
  if (memory_.size_bytes() == 0) begin_ = end_ = cut_bytes_ = 0;
  begin_ += std::exchange(cut_bytes_, 0);
  if (begin_ == end_ && memory_.size_bytes() != 0) release();
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
  unstorable.why = core::memory_exhausted(*quota_, header.body_bytes);
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
  if (!given_.empty()) store(given_.size(), stored().size() + given_.size(), Charging::always);
}

}  // namespace muster::server
