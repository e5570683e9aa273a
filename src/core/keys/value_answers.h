#pragma once

#include <optional>
#include <span>

#include "base/little_endian.h"
#include "core/keys/entry.h"
#include "core/session/reply.h"
#include "wire/writer.h"

// Answers that hold values of keys. A value is not copied into its answer: the head is what comes
// before the value's bytes; a short value is borrowed until the reply is put together, a long one
// shared.

namespace muster::core {

/// Lets the entry's value follow the head.
inline void add_value(Answer& answer, const Entry& entry) {
  wire::Writer(answer.head).u32(static_cast<std::uint32_t>(entry.value().size()));
  if (entry.block.is_shared()) {
    answer.tail = entry.block.shared();
  } else {
    answer.value = entry.value();
  }
}

/// A wire::ValueReply.
inline Answer value_answer(const Entry& entry) {
  Answer answer;
  add_value(answer, entry);
  return answer;
}

inline Answer value_answer(const Payload& value) {
  Answer answer;
  wire::Writer(answer.head).u32(static_cast<std::uint32_t>(value->view().size()));
  answer.tail = value;
  return answer;
}

/// A wire::AppliedReply that tells what is there instead; null: nothing.
inline Answer not_applied_answer(const Entry* present) {
  if (present == nullptr) return answer_of(wire::AppliedReply{});
  Answer answer;
  wire::Writer writer(answer.head);
  writer.u8(0);
  writer.u8(1);
  add_value(answer, *present);
  return answer;
}

/// A wire::ValuesReply, all in one payload, with a charge of the quota's reserve; without it when
/// that refuses.
inline Answer values_answer(Quota& quota, std::span<const std::optional<std::string_view>> values) {
  std::size_t bytes = 4;
  for (const auto& value : values) bytes += value ? 5 + value->size() : 1;
  BlankPayload blank = make_blank_payload(quota, bytes, Charging::reserve);
  Answer answer;
  answer.owns_tail = true;
  answer.tail = std::move(blank.payload);
  if (answer.tail == nullptr) return answer;
  char* at = blank.bytes;
  const auto put_size = [&at](std::size_t size) {
    base::to_little_endian(static_cast<std::uint32_t>(size), at);
    at += sizeof(std::uint32_t);
  };
  put_size(values.size());
  for (const auto& value : values) {
    *at++ = value ? 1 : 0;
    if (!value) continue;
    put_size(value->size());
    at += value->copy(at, value->size());
  }
  return answer;
}

}  // namespace muster::core
