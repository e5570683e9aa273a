#include "wire/frame.h"

#include "base/little_endian.h"
#include "wire/failure.h"

namespace muster::wire {
namespace {

bool is_known(FrameType type) { return type >= FrameType::request && type <= FrameType::echo; }

}  // namespace

std::array<char, frame_header_bytes> encode_frame_header(const FrameHeader& header) {
  std::array<char, frame_header_bytes> bytes{};
  base::to_little_endian(header.body_bytes, &bytes[0]);
  bytes[4] = static_cast<char>(header.type);
  base::to_little_endian(header.code, &bytes[6]);
  base::to_little_endian(header.id, &bytes[8]);
  return bytes;
}

std::size_t begin_frame(std::string& out, FrameHeader header) {
  const std::size_t begun_at = out.size();
  const auto bytes = encode_frame_header(header);
  out.append(bytes.data(), bytes.size());
  return begun_at;
}

FrameHeader decode_frame_header(std::string_view bytes) {
  FrameHeader header;
  header.body_bytes = base::from_little_endian<std::uint32_t>(&bytes[0]);
  header.type = static_cast<FrameType>(bytes[4]);
  header.code = base::from_little_endian<std::uint16_t>(&bytes[6]);
  header.id = base::from_little_endian<std::uint64_t>(&bytes[8]);
  return header;
}

void end_frame(std::string& out, std::size_t begun_at) {
  const std::size_t body_bytes = out.size() - begun_at - frame_header_bytes;
  base::to_little_endian(static_cast<std::uint32_t>(body_bytes), out.data() + begun_at);
}

void append_frame(std::string& out, FrameHeader header, std::string_view body) {
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  begin_frame(out, header);
  out.append(body);
}

Result<std::optional<Frame>> cut_frame(std::string_view bytes, std::uint32_t body_bytes_max) {
  if (bytes.size() < frame_header_bytes) return std::optional<Frame>();
  Frame frame;
  frame.header = decode_frame_header(bytes);
  if (!is_known(frame.header.type)) {
    return protocol_error("frame of unknown type " +
                          std::to_string(static_cast<unsigned>(frame.header.type)));
  }
  if (frame.header.body_bytes > body_bytes_max) {
    Error error = failure(ErrorCode::too_large, "a frame declares more than is allowed");
    error.actual = frame.header.body_bytes;
    error.limit = body_bytes_max;
    return error;
  }
  bytes.remove_prefix(frame_header_bytes);
  if (bytes.size() < frame.header.body_bytes) return std::optional<Frame>();
  frame.body = bytes.substr(0, frame.header.body_bytes);
  return std::optional<Frame>(frame);
}

}  // namespace muster::wire
