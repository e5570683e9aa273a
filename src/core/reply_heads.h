#pragma once

#include "core/session.h"
#include "wire/reply.h"
#include "wire/writer.h"

// Answers of the table. A value is not copied into its reply: the reply's head is what comes
// before the value's bytes, the payload itself is the tail.

namespace muster::core {

template <class Reply>
Answer answer_of(const Reply& reply) {
  Answer answer;
  wire::append_body(answer.head, reply);
  return answer;
}

/// A wire::ValueReply.
inline Answer value_answer(Payload value) {
  Answer answer;
  wire::Writer(answer.head).u32(static_cast<std::uint32_t>(value->view().size()));
  answer.tail = std::move(value);
  return answer;
}

/// A wire::AppliedReply that tells what is there instead; null: nothing.
inline Answer not_applied_answer(Payload present) {
  if (present == nullptr) return answer_of(wire::AppliedReply{});
  Answer answer;
  wire::Writer writer(answer.head);
  writer.u8(0);
  writer.u8(1);
  writer.u32(static_cast<std::uint32_t>(present->view().size()));
  answer.tail = std::move(present);
  return answer;
}

}  // namespace muster::core
