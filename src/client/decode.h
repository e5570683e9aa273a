#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "muster/result.h"
#include "wire/operation_table.h"

namespace muster::client {

/// Makes a decoder of the replies to `Request`: `read(reply, std::string& body)` turns the decoded
/// reply, which views the body, into the value that the caller owns.
template <class T, class Request, class Read>
auto decoder(Read read) {
  return [read](std::string&& body) -> Result<T> {
    auto reply = wire::decode_body<wire::ReplyTo<Request>>(body);
    if (!reply) return std::move(reply).error();
    if constexpr (std::is_void_v<T>) {
      read(*reply, body);
      return {};
    } else {
      return T(read(*reply, body));
    }
  };
}

/// Reads a reply in which nothing is of interest to the caller.
inline constexpr auto read_nothing = [](const auto&, const auto&) {};

/// `part` of `body`, in the memory that the body has already.
inline std::string cut_out(std::string& body, std::string_view part) {
  const auto begin = static_cast<std::size_t>(part.data() - body.data());
  body.resize(begin + part.size());
  body.erase(0, begin);
  return std::move(body);
}

}  // namespace muster::client
