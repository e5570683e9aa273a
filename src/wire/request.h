#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "muster/types.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/operation_table.h"

// Requests as frames. The body of a request frame:
//    u64  timeout_us        time the caller has left, from receipt; clamped to 30 days
//    u32  count, u64[]      acknowledged: ids of replies that were received and used
//    ...                    the fields of the operation, see wire/request_bodies.h
//    [u8 tag, u32 length, bytes]*   optional fields; unknown tags are skipped

namespace muster::wire {

/// The most ids that one frame may carry; further ones go into the next frame.
inline constexpr std::uint32_t ids_per_frame_max = 65536;

struct Request {
  std::uint64_t id = 0;
  Duration timeout{};
  std::vector<std::uint64_t> acknowledged;
  RequestBody body;
};

/// Appends one whole request frame.
void append_request(std::string& out, const Request& request);

/// The same in two steps, for requests that may have to be sent again: the fields of the operation
/// once, and a frame around them (`request.body` is not looked at) each time.
void append_operation(std::string& out, const RequestBody& body);
void append_request(std::string& out, const Request& request, Operation operation,
                    std::string_view operation_fields);

/// Decodes a request frame into `request`, whose memory is used again.
///
/// errors  unsupported (unknown operation: answered, the connection goes on, and `decode_ids` still
///         tells what the frame acknowledges), protocol_error (the bytes do not match the
///         operation: the connection is closed)
Result<void> decode_request(const Frame& frame, Request& request);

/// The one-way frames that carry a list of request ids: acknowledge, abandon, heartbeat.
void append_ids(std::string& out, FrameType type, std::uint64_t id,
                const std::vector<std::uint64_t>& request_ids);
/// Decodes them into `request_ids`, whose memory is used again. Also takes a request frame, of any
/// operation: the ids that its prefix acknowledges.
///
/// errors  protocol_error
Result<void> decode_ids(const Frame& frame, std::vector<std::uint64_t>& request_ids);

/// The echo of a server's hello that begins a session: who knows the token has read it.
void append_echo(std::string& out, const ResumeToken& token);
/// errors  protocol_error
Result<ResumeToken> decode_echo(const Frame& frame);

/// Goodbye of either side, with a reason for people.
void append_goodbye(std::string& out, std::string_view reason);
Result<std::string_view> decode_goodbye(const Frame& frame);

}  // namespace muster::wire
