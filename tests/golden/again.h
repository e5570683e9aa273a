#pragma once

#include <array>
#include <string>
#include <string_view>

#include "muster/result.h"
#include "wire/frame.h"
#include "wire/reply.h"

// Each decodes any bytes as one kind of message, and encodes what came out. All but the hellos
// take a whole frame.

namespace muster::golden {

/// The one whole frame of `bytes`.
Result<wire::Frame> whole_frame(std::string_view bytes);

/// Sets the length in the header, if there is one, to what follows it.
void tell_true_length(std::string& frame);

Result<std::string> client_hello_again(std::string_view bytes);
Result<std::string> server_hello_again(std::string_view bytes);
Result<std::string> request_again(std::string_view bytes);
/// Of acknowledge, abandon and heartbeat.
Result<std::string> ids_again(std::string_view bytes);
Result<std::string> goodbye_again(std::string_view bytes);
Result<std::string> echo_again(std::string_view bytes);
Result<std::string> error_again(std::string_view bytes);
Result<std::string> event_again(std::string_view bytes);
/// Of frames whose body, if they have one, is any bytes.
Result<std::string> plain_again(std::string_view bytes);

template <class Reply>
Result<std::string> reply_again(std::string_view bytes) {
  const Result<wire::Frame> frame = whole_frame(bytes);
  if (!frame) return frame.error();
  const Result<Reply> decoded = wire::decode_body<Reply>(frame->body);
  if (!decoded) return decoded.error();
  std::string body;
  wire::append_body(body, *decoded);
  std::string out;
  wire::append_frame(out, frame->header, body);
  return out;
}

using Again = Result<std::string> (*)(std::string_view bytes);

/// One per kind of reply.
extern const std::array<Again, 21> replies_again;

/// What a client sends in frames of that type; null: nothing.
Again again_from_client(const wire::FrameHeader& header);
/// What a server sends to a call that expects that kind of reply; null: nothing.
Again again_from_server(const wire::FrameHeader& header, std::size_t expected_reply);

/// Whether `bytes` are refused, or decode to what encodes to a fixed point of both.
template <class AnyAgain>
bool is_settled_by(const AnyAgain& again, std::string_view bytes) {
  const Result<std::string> first = again(bytes);
  if (!first) return true;
  const Result<std::string> second = again(*first);
  return second.has_value() && *second == *first;
}

}  // namespace muster::golden
