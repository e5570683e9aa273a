#pragma once

#include "core/session/answers.h"
#include "wire/reply.h"

namespace muster::core {

/// The answer that is `reply`.
template <class Reply>
Answer answer_of(const Reply& reply) {
  Answer answer;
  wire::append_body(answer.head, reply);
  return answer;
}

}  // namespace muster::core
