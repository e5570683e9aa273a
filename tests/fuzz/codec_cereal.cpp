#include "muster/codec_cereal.h"

#include <deque>
#include <list>
#include <string>
#include <vector>

#include <cereal/types/deque.hpp>
#include <cereal/types/list.hpp>

#include "api/codec_types.h"
#include "fuzz.h"
#include "support/allocations.h"

// Objects of other processes: decoding takes memory in proportion to the bytes that came, and what
// decodes encodes to what decodes to the same.

using namespace muster;

namespace {

/// The most that one byte on the wire may ask the allocator for, and what errors take in any case.
constexpr std::uint64_t bytes_per_byte_max = 512;
constexpr std::uint64_t bytes_in_any_case = 4096;

template <class T>
void check(std::string_view bytes, std::uint64_t factor) {
  const std::uint64_t before = test::allocated().bytes;
  const Result<T> object = CerealCodec::decode<T>(bytes);
  const std::uint64_t taken = test::allocated().bytes - before;
  fuzz::require(taken <= factor * bytes.size() + bytes_in_any_case, "memory is bounded");
  if (!object) return;
  const Result<std::string> encoded = CerealCodec::encode(*object);
  fuzz::require(encoded.has_value(), "what was decoded can be encoded");
  const Result<T> again = CerealCodec::decode<T>(*encoded);
  fuzz::require(again.has_value(), "what was encoded can be decoded");
  fuzz::require(*CerealCodec::encode(*again) == *encoded, "it is the same object");
}

using Containers = std::map<std::string, std::list<std::deque<std::optional<std::string>>>>;
using Large = std::vector<test::Large>;

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  switch (input.below(5)) {
    case 0: check<test::Plan>(input.rest(), bytes_per_byte_max); break;
    case 1: check<test::Tree>(input.rest(), bytes_per_byte_max); break;
    case 2: check<Containers>(input.rest(), bytes_per_byte_max); break;
    case 3: check<Large>(input.rest(), 4 * sizeof(test::Large)); break;
    case 4: check<std::string>(input.rest(), 8); break;
    default: break;
  }
  return 0;
}
