#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "wire/reply.h"

namespace muster::sim {

/// A reply's body; what cannot be read ends the story.
template <class Reply>
Reply body_of(std::string_view body) {
  auto read = wire::decode_body<Reply>(body);
  if (!read) throw std::runtime_error("a reply that cannot be read: " + read.error().message());
  return *std::move(read);
}

}  // namespace muster::sim
