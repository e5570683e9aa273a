#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace muster::core {

// SipHash-1-3: one round per eight bytes, three at the end. Inline, since most keys are short: what
// is around the rounds is most of the work then.

class SipHash13 {
 public:
  explicit SipHash13(const std::array<std::uint64_t, 2>& key)
      : v0_(key[0] ^ 0x736f6d6570736575),
        v1_(key[1] ^ 0x646f72616e646f6d),
        v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {}

  void add(std::uint64_t word) {
    v3_ ^= word;
    round();
    v0_ ^= word;
  }

  std::uint64_t finish() {
    v2_ ^= 0xff;
    for (int count = 0; count < 3; ++count) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

template <class Word>
Word word_at(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

/// The last `count` < 8 of `size` bytes that end at `end`, as a number. Reads what overlaps rather
/// than byte by byte, and nothing that is not there.
inline std::uint64_t tail_of(const char* end, std::size_t count, std::size_t size) {
  if (count == 0) return 0;
  if (size >= 8) return word_at<std::uint64_t>(end - 8) >> (64 - 8 * count);
  const char* const begin = end - count;
  if (count >= 4) {
    return word_at<std::uint32_t>(begin) | std::uint64_t{word_at<std::uint32_t>(end - 4)}
                                               << (8 * (count - 4));
  }
  const auto byte = [begin](std::size_t index) {
    return std::uint64_t{static_cast<unsigned char>(begin[index])} << (8 * index);
  };
  return byte(0) | byte(count / 2) | byte(count - 1);
}

/// SipHash-1-3 of `bytes`: nobody who does not know `key` can choose bytes that collide.
/// see  https://www.aumasson.jp/siphash/siphash.pdf
inline std::uint64_t keyed_hash(const std::array<std::uint64_t, 2>& key, std::string_view bytes) {
  SipHash13 hash(key);
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  for (; end - at >= 8; at += 8) hash.add(word_at<std::uint64_t>(at));
  const std::uint64_t tail = tail_of(end, static_cast<std::size_t>(end - at), bytes.size());
  hash.add(tail | static_cast<std::uint64_t>(bytes.size()) << 56);
  return hash.finish();
}

}  // namespace muster::core
