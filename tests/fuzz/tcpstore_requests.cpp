#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz.h"
#include "server/tcpstore/request.h"

// What clients of TCPStore say, all at once and in pieces: it is the same, within the limits.

using namespace muster;
using namespace muster::server::tcpstore;

namespace {

constexpr RequestLimits limits{32, 64, 16};

struct Heard {
  std::string requests;   ///< all that was read of them
  std::size_t bytes = 0;  ///< that they took
  bool is_refused = false;
};

/// With what tells one request from another.
void note(std::string& noted, const Request& request) {
  noted += name_of(request.command);
  for (const std::string_view key : request.keys) {
    fuzz::require(key.size() <= limits.key_bytes_max, "no key is too long");
    noted += " k" + std::to_string(key.size());
    noted += key;
  }
  for (const std::string_view value : request.values) {
    fuzz::require(value.size() <= limits.value_bytes_max, "no value is too long");
    noted += " v" + std::to_string(value.size());
    noted += value;
  }
  fuzz::require(request.keys.size() <= limits.keys_max, "no list is too long");
  noted += " n" + std::to_string(request.number) + "\n";
}

/// piece_bytes  that come at a time
Heard hear(std::string_view bytes, std::size_t piece_bytes, Dialect fallback) {
  RequestReader reader(fallback, limits);
  Request request;
  Heard heard;
  for (std::size_t end = 0; end < bytes.size() && !heard.is_refused;) {
    end = std::min(bytes.size(), end + piece_bytes);
    for (;;) {
      // Where nothing else is, so that a read beyond its end is seen.
      const std::vector<char> here(bytes.begin() + static_cast<std::ptrdiff_t>(heard.bytes),
                                   bytes.begin() + static_cast<std::ptrdiff_t>(end));
      const auto size = reader.read({here.data(), here.size()}, request);
      heard.is_refused = !size.has_value();
      if (heard.is_refused || *size == 0) break;
      fuzz::require(*size <= here.size(), "a request has no more bytes than there are");
      note(heard.requests, request);
      heard.bytes += *size;
    }
  }
  return heard;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t piece_bytes = 1 + input.below(32);
  constexpr std::array fallbacks = {Dialect::first, Dialect::newest, Dialect::second};
  const Dialect fallback = fallbacks[input.below(fallbacks.size())];
  const Heard at_once = hear(input.rest(), input.rest().size() + 1, fallback);
  const Heard in_pieces = hear(input.rest(), piece_bytes, fallback);
  fuzz::require(at_once.requests == in_pieces.requests, "pieces say the same");
  fuzz::require(at_once.is_refused == in_pieces.is_refused, "the same is refused");
  return 0;
}
