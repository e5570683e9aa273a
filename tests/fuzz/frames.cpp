#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/payload.h"
#include "fuzz.h"
#include "server/peer/frame_assembler.h"
#include "wire/frame.h"

// A stream of bytes cut into frames, once in one piece by wire::cut_frame, and once in pieces by
// the server's FrameAssembler, with and without memory for them: the same frames must come out.

using namespace muster;
using server::FrameAssembler;

namespace {

struct Cut {
  std::uint64_t id = 0;
  std::uint16_t code = 0;
  wire::FrameType type{};
  std::string body;
};

struct Stream {
  std::vector<Cut> frames;
  ErrorCode error{};
};

Stream cut_whole(std::string_view bytes, std::uint32_t body_bytes_max) {
  Stream stream;
  for (;;) {
    const auto frame = wire::cut_frame(bytes, body_bytes_max);
    if (!frame.has_value()) {
      stream.error = frame.error().code;
      return stream;
    }
    if (!*frame) return stream;
    const wire::FrameHeader& header = (*frame)->header;
    fuzz::require(header.body_bytes <= body_bytes_max, "no frame is longer than allowed");
    fuzz::require((*frame)->body.size() == header.body_bytes, "a body is as long as declared");
    stream.frames.push_back({header.id, header.code, header.type, std::string((*frame)->body)});
    bytes.remove_prefix(wire::frame_header_bytes + header.body_bytes);
  }
}

class Pieces {
 public:
  Pieces(core::Quota& quota, std::uint32_t body_bytes_max, const Stream& expected)
      : quota_(quota), assembler_(quota, {body_bytes_max, body_bytes_max}), expected_(expected) {}

  /// Where the next piece may be put; empty: anywhere else.
  std::span<char> room() { return assembler_.room(); }

  /// Returns whether there can be more.
  bool give(std::string_view piece, std::size_t frames_before_keep) {
    given_bytes_ += piece.size();
    assembler_.give(piece);
    for (std::size_t count = 0; count < frames_before_keep; ++count) {
      const auto next = assembler_.next();
      if (!next) {
        is_over_ = true;
        if (next.error().code == ErrorCode::resource_exhausted)
          return false;  // a long one-way frame
        fuzz::require(next.error().code == expected_.error, "the same error ends the stream");
        fuzz::require(index_ == expected_.frames.size(), "all frames before it came out");
        return false;
      }
      if (std::holds_alternative<FrameAssembler::Incomplete>(*next)) break;
      if (const auto* frame = std::get_if<wire::Frame>(&*next)) look_at(*frame);
      if (const auto* lost = std::get_if<FrameAssembler::Unstorable>(&*next)) look_at(*lost);
    }
    assembler_.keep();
    // A kept frame, of at least 16 bytes, has a charge of 80 beside its own memory.
    fuzz::require(quota_.used_bytes() <= 2 * given_bytes_ + 5 * given_bytes_ + 2048,
                  "memory is for what has come");
    return true;
  }

  void finish() {
    for (std::size_t before = SIZE_MAX; !is_over_ && before != index_;) {
      before = index_;
      give({}, 1);
    }
    if (is_over_) return;
    fuzz::require(index_ == expected_.frames.size() + (is_cut_off_ ? 1 : 0), "all came out");
    fuzz::require(expected_.error == ErrorCode{}, "the error came out, too");
  }

 private:
  void look_at(const wire::Frame& frame) {
    fuzz::require(expected(frame.header).body == frame.body, "the same body comes out");
    core::ChargedMemory* const memory = assembler_.memory_of_last();
    if (memory == nullptr || !memory->is_mostly(frame.body)) return;
    if (core::Payload kept = memory->take_over(quota_, frame.body, core::Charging::normal))
      kept_.push_back(std::move(kept));
  }
  void look_at(const FrameAssembler::Unstorable& lost) {
    fuzz::require(lost.header.type == wire::FrameType::request, "only requests are refused");
    if (index_ < expected_.frames.size()) {
      expected(lost.header);
      return;
    }
    fuzz::require(!is_cut_off_, "what is cut off is the last");
    is_cut_off_ = true;
    ++index_;
  }
  const Cut& expected(const wire::FrameHeader& header) {
    fuzz::require(index_ < expected_.frames.size(), "no frame comes out of nothing");
    const Cut& cut = expected_.frames[index_++];
    fuzz::require(cut.id == header.id && cut.code == header.code && cut.type == header.type,
                  "the same header comes out");
    return cut;
  }

  core::Quota& quota_;
  std::vector<core::Payload> kept_;
  FrameAssembler assembler_;
  const Stream& expected_;
  std::size_t index_ = 0;
  std::uint64_t given_bytes_ = 0;
  bool is_cut_off_ = false;  ///< the last one, refused before all of it has come
  bool is_over_ = false;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array<std::uint32_t, 4> limits = {UINT32_MAX, 1U << 20, 100, 0};
  constexpr std::array<std::uint64_t, 4> quotas = {1U << 30, 20'000, 9'000, 0};
  fuzz::Input input(data, size);
  const std::uint32_t body_bytes_max = limits[input.below(limits.size())];
  core::Quota quota(quotas[input.below(quotas.size())]);
  const std::size_t bytes_min = 2048 * input.below(8);  // small inputs, long bodies
  std::uint64_t pattern = input.number(6);

  std::string bytes(input.rest());
  while (!input.is_over() && bytes.size() < bytes_min) bytes += input.rest();
  const Stream expected = cut_whole(bytes, body_bytes_max);
  {
    Pieces pieces(quota, body_bytes_max, expected);
    std::string_view rest = bytes;
    bool goes_on = true;
    for (int turn = 0; goes_on && !rest.empty(); ++turn) {
      const std::size_t least = turn < 64 ? 1 : 512;
      const std::size_t count = std::min(rest.size(), least + (pattern & 0xff) * 8);
      const std::size_t frames_before_keep = (pattern >> 8 & 1) != 0 ? SIZE_MAX : pattern >> 9 & 3;
      const std::span<char> room = (pattern >> 11 & 1) != 0 ? pieces.room() : std::span<char>();
      if (room.size() >= count) {
        rest.copy(room.data(), count);
        goes_on = pieces.give({room.data(), count}, frames_before_keep);
      } else {
        const std::string piece(rest.substr(0, count));  // bytes of its own, which then go
        goes_on = pieces.give(piece, frames_before_keep);
      }
      rest.remove_prefix(count);
      pattern = pattern >> 12 | pattern << 36;
    }
    pieces.finish();
  }
  fuzz::require(quota.used_bytes() == 0, "all memory is given back");
  return 0;
}
