#include "core/hash.h"

#include <bit>
#include <cstring>

namespace muster::core {
namespace {

struct State {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
};

}  // namespace

std::uint64_t keyed_hash(const std::array<std::uint64_t, 2>& key, std::string_view bytes) {
  State state{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
              key[1] ^ 0x7465646279746573};
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    state.v3 ^= word;
    state.round();
    state.v0 ^= word;
  }
  std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
  for (std::size_t index = 0; at + index < bytes.size(); ++index) {
    last |= std::uint64_t{static_cast<unsigned char>(bytes[at + index])} << (8 * index);
  }
  state.v3 ^= last;
  state.round();
  state.v0 ^= last;
  state.v2 ^= 0xff;
  for (int count = 0; count < 3; ++count) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace muster::core
