#include "muster/codec_raw.h"

#include <doctest/doctest.h>

namespace muster::test {
namespace {

TEST_CASE("raw bytes come back as they were") {
  const std::string text("a\0b", 3);
  CHECK(*RawCodec::encode(text) == text);
  CHECK(*RawCodec::decode<std::string>(text) == text);
  CHECK(*RawCodec::decode<std::vector<std::uint8_t>>(text) ==
        std::vector<std::uint8_t>{'a', 0, 'b'});
  const std::array<std::byte, 2> pair{std::byte{1}, std::byte{255}};
  CHECK(*RawCodec::decode<std::array<std::byte, 2>>(*RawCodec::encode(pair)) == pair);
  CHECK(RawCodec::encode(std::vector<char>())->empty());
  CHECK(RawCodec::decode<std::string>("")->empty());
}

TEST_CASE("an array takes only as many bytes as it has") {
  const auto decoded = RawCodec::decode<std::array<char, 4>>("abc");
  REQUIRE_FALSE(decoded.has_value());
  CHECK(decoded.error().code == ErrorCode::codec_failure);
  CHECK(decoded.error().expected == 4);
  CHECK(decoded.error().actual == 3);
}

}  // namespace
}  // namespace muster::test
