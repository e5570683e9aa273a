#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/result.h"

// After the two hellos both directions carry frames: a fixed 16-byte header and a body.
//
//    0  u32  body_bytes   what follows the header; checked before anything is allocated
//    4  u8   type         FrameType
//    5  u8   flags        zero; receivers ignore it
//    6  u16  code         request: Operation; reply: 0 or ErrorCode; event: EventKind; else 0
//    8  u64  id           request, reply, part: request id; heartbeat: its number; else 0

namespace muster::wire {

inline constexpr std::size_t frame_header_bytes = 16;

enum class FrameType : std::uint8_t {
  request = 1,          ///< client: one operation; exactly one reply follows
  reply = 2,            ///< server
  acknowledge = 3,      ///< client, one-way: replies that were received and used
  abandon = 4,          ///< client, one-way: replies that are no longer wanted
  heartbeat = 5,        ///< client: "I live"; body: replies acknowledged meanwhile
  heartbeat_reply = 6,  ///< server: the same number back
  event = 7,            ///< server: something nobody asked for, such as the loss of a rank
  goodbye = 8,          ///< either: the session (client) or the server (server) ends in order
  part = 9,             ///< server: bytes of a reply, before those in the reply's own frame
  echo = 10,            ///< client, first in a new session: its token, from the server's hello
};

struct FrameHeader {
  std::uint32_t body_bytes = 0;
  FrameType type = FrameType::request;
  std::uint16_t code = 0;
  std::uint64_t id = 0;
};

struct Frame {
  FrameHeader header;
  std::string_view body;  ///< valid as long as the bytes it was cut from
};

/// The bytes of a header, its `body_bytes` among them.
std::array<char, frame_header_bytes> encode_frame_header(const FrameHeader& header);

/// Appends header and body.
void append_frame(std::string& out, FrameHeader header, std::string_view body);

/// Appends a header whose body the caller appends next and then closes with `end_frame`.
std::size_t begin_frame(std::string& out, FrameHeader header);
void end_frame(std::string& out, std::size_t begun_at);

/// Of at least `frame_header_bytes` bytes, whatever they are.
FrameHeader decode_frame_header(std::string_view bytes);

/// Cuts the first frame from `bytes`.
///
/// body_bytes_max  frames that declare more are refused on their header alone
/// returns         the frame; nothing when more bytes are needed
/// errors          too_large (actual, limit), protocol_error (unknown frame type)
Result<std::optional<Frame>> cut_frame(std::string_view bytes, std::uint32_t body_bytes_max);

}  // namespace muster::wire
