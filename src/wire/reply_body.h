#pragma once

#include <string>
#include <string_view>

#include "wire/codec.h"
#include "wire/failure.h"
#include "wire/reply.h"

// The bodies of what reply.h declares, for the files that make them for each reply: few in each, so
// that the compiler has room to put the codec into them.

namespace muster::wire {

template <class Reply>
void append_body(std::string& out, const Reply& reply) {
  Encoder encoder(out);
  fields(encoder, reply);
}

template <class Reply>
Result<Reply> decode_body(std::string_view body) {
  Reader reader(body);
  Decoder decoder(reader);
  Reply reply;
  fields(decoder, reply);
  skip_optional_fields(reader);
  if (!reader.ok()) return protocol_error("the bytes are no reply to this operation");
  return reply;
}

}  // namespace muster::wire

#define MUSTER_INSTANTIATE_REPLY(Reply)                  \
  template void append_body(std::string&, const Reply&); \
  template Result<Reply> decode_body(std::string_view)
