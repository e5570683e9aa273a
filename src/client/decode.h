#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "muster/result.h"
#include "wire/reply.h"

namespace muster::client {

/// Makes a decoder of reply bodies: `read(Reply&, std::string& body)` turns what was decoded, which
/// views the body, into the value that the caller owns.
template <class T, class Reply, class Read>
auto decoder(Read read) {
  return [read](std::string&& body) -> Result<T> {
    auto reply = wire::decode_body<Reply>(body);
    if (!reply) return std::move(reply).error();
    if constexpr (std::is_void_v<T>) {
      read(*reply, body);
      return {};
    } else {
      return T(read(*reply, body));
    }
  };
}

inline auto nothing_decoder() {
  return decoder<void, wire::EmptyReply>([](const auto&, const auto&) {});
}

/// `part` of `body`, in the memory that the body has already.
inline std::string cut_out(std::string& body, std::string_view part) {
  const auto begin = static_cast<std::size_t>(part.data() - body.data());
  body.resize(begin + part.size());
  body.erase(0, begin);
  return std::move(body);
}

}  // namespace muster::client
