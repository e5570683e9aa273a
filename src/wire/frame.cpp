#include "wire/frame.h"

#include "wire/failure.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace muster::wire {
namespace {

bool is_known(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(FrameType::request) &&
         type <= static_cast<std::uint8_t>(FrameType::part);
}

}  // namespace

std::size_t begin_frame(std::string& out, FrameHeader header) {
  const std::size_t begun_at = out.size();
  Writer writer(out);
  writer.u32(header.body_bytes);
  writer.u8(static_cast<std::uint8_t>(header.type));
  writer.u8(0);
  writer.u16(header.code);
  writer.u64(header.id);
  return begun_at;
}

void end_frame(std::string& out, std::size_t begun_at) {
  const std::size_t body_bytes = out.size() - begun_at - frame_header_bytes;
  Writer(out).patch_u32(begun_at, static_cast<std::uint32_t>(body_bytes));
}

void append_frame(std::string& out, FrameHeader header, std::string_view body) {
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  begin_frame(out, header);
  out.append(body);
}

Result<std::optional<Frame>> cut_frame(std::string_view bytes, std::uint32_t body_bytes_max) {
  if (bytes.size() < frame_header_bytes) return std::optional<Frame>();
  Reader reader(bytes);
  Frame frame;
  frame.header.body_bytes = reader.u32();
  const std::uint8_t type = reader.u8();
  reader.u8();  // flags
  frame.header.code = reader.u16();
  frame.header.id = reader.u64();
  if (!is_known(type)) {
    return protocol_error("frame of unknown type " + std::to_string(type));
  }
  frame.header.type = static_cast<FrameType>(type);
  if (frame.header.body_bytes > body_bytes_max) {
    Error error = failure(ErrorCode::too_large, "a frame declares more than is allowed");
    error.actual = frame.header.body_bytes;
    error.limit = body_bytes_max;
    return error;
  }
  if (reader.remaining() < frame.header.body_bytes) return std::optional<Frame>();
  frame.body = reader.raw(frame.header.body_bytes);
  return std::optional<Frame>(frame);
}

}  // namespace muster::wire
