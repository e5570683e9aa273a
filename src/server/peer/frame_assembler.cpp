#include "server/peer/frame_assembler.h"

#include <array>
#include <utility>

#include "core/memory/frame_charging.h"
#include "core/session/failure.h"
#include "wire/request.h"

namespace muster::server {
namespace {

using core::Charging;
using wire::frame_header_bytes;

constexpr std::size_t expected_of_header_bytes = 1024;

}  // namespace

Result<FrameAssembler::Next> FrameAssembler::next() {
  drop_cut();
  if (!stored().empty()) return next_stored();
  Result<std::optional<wire::Frame>> frame = wire::cut_frame(given(), limits_.body_bytes_max);
  if (!frame.has_value()) return std::move(frame).error();
  if (*frame) {
    cut_given(frame_header_bytes + (*frame)->body.size());
    return Next(**frame);
  }
  if (given().empty()) return Next(Incomplete{});
  return next_stored();
}

/// Completes the frame that is stored in part, from what was given.
Result<FrameAssembler::Next> FrameAssembler::next_stored() {
  for (;;) {
    Result<std::optional<wire::Frame>> frame = wire::cut_frame(stored(), limits_.body_bytes_max);
    if (!frame.has_value()) return std::move(frame).error();
    if (*frame) {
      cut_stored(frame_header_bytes + (*frame)->body.size());
      return Next(**frame);
    }
    // A header that comes alone may be refused.
    if (given().empty() && stored().size() != frame_header_bytes) return Next(Incomplete{});
    if (stored().size() < frame_header_bytes) {
      store(frame_header_bytes - stored().size(), expected_of_header_bytes, Charging::always);
      continue;
    }
    const wire::FrameHeader header = wire::decode_frame_header(stored());
    const std::size_t frame_bytes = frame_header_bytes + header.body_bytes;
    const bool is_request = header.type == wire::FrameType::request;
    if (!is_request && header.body_bytes > limits_.essential_bytes_max) return too_long(header);
    if (given().empty()) return Next(Incomplete{});
    const Charging charging = core::charging_of(header, limits_.essential_bytes_max);
    if (store(frame_bytes - stored().size(), frame_bytes, charging)) continue;
    if (!is_request) return no_room(header);
    return Next(skip_request(header));
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

std::span<char> FrameAssembler::room() {
  drop_cut();
  if (!given().empty() || stored().size() < frame_header_bytes) return {};
  const wire::FrameHeader header = wire::decode_frame_header(stored());
  const std::size_t frame_bytes = frame_header_bytes + header.body_bytes;
  if (header.body_bytes > limits_.body_bytes_max || frame_bytes < stored().size()) return {};
  return room_for(frame_bytes - stored().size());
}

bool FrameAssembler::has_part_only() const {
  const std::string_view first = not_cut();
  const std::size_t bytes = first.size() + given().size();
  if (bytes < frame_header_bytes) return true;
  std::array<char, frame_header_bytes> header;
  const std::size_t of_first = first.copy(header.data(), header.size());
  given().copy(header.data() + of_first, header.size() - of_first);
  return bytes - frame_header_bytes <
         wire::decode_frame_header({header.data(), header.size()}).body_bytes;
}

FrameAssembler::Unstorable FrameAssembler::skip_request(const wire::FrameHeader& header) {
  Unstorable unstorable;
  unstorable.header = header;
  const wire::Frame begun{header, stored().substr(frame_header_bytes)};
  if (!wire::decode_ids(begun, unstorable.acknowledged)) unstorable.acknowledged.clear();
  unstorable.why = core::memory_exhausted(quota(), header.body_bytes);
  skip(frame_header_bytes + header.body_bytes - stored().size());
  return unstorable;
}

}  // namespace muster::server
