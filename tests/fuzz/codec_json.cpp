#include "muster/codec_json.h"

#include <map>
#include <string>
#include <vector>

#include "fuzz.h"
#include "support/allocations.h"

// JSON of other processes: as codec_cereal.cpp.

using namespace muster;

namespace {

/// The most that one byte of text may ask the allocator for, and what errors take in any case.
constexpr std::uint64_t bytes_per_byte_max = 512;
constexpr std::uint64_t bytes_in_any_case = 16384;

template <class T>
void check(std::string_view text) {
  const std::uint64_t before = test::allocated().bytes;
  const Result<T> object = JsonCodec::decode<T>(text);
  const std::uint64_t taken = test::allocated().bytes - before;
  fuzz::require(taken <= bytes_per_byte_max * text.size() + bytes_in_any_case, "memory is bounded");
  if (!object) return;
  const Result<std::string> encoded = JsonCodec::encode(*object);
  fuzz::require(encoded.has_value(), "what was decoded can be encoded");
  const Result<T> again = JsonCodec::decode<T>(*encoded);
  fuzz::require(again.has_value(), "what was encoded can be decoded");
  fuzz::require(*JsonCodec::encode(*again) == *encoded, "it is the same object");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  switch (input.below(3)) {
    case 0: check<nlohmann::json>(input.rest()); break;
    case 1: check<std::map<std::string, std::vector<double>>>(input.rest()); break;
    case 2: check<std::vector<std::string>>(input.rest()); break;
    default: break;
  }
  return 0;
}
