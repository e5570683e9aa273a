#include "core/keys/block.h"

#include <string>

#include <doctest/doctest.h>

using namespace muster::core;

namespace {

NewValue short_value(std::string_view first, std::string_view second = {}) {
  return {first, second, nullptr};
}

}  // namespace

TEST_CASE("a block holds a key and a value of two pieces, whatever they are") {
  for (const auto extras : {Block::Extras::none, Block::Extras::room}) {
    for (std::size_t key_bytes = 1; key_bytes < 50; ++key_bytes) {
      for (std::size_t value_bytes = 0; value_bytes < 50; ++value_bytes) {
        const std::string key(key_bytes, 'k');
        const std::string value(value_bytes, 'v');
        const NewValue pieces = short_value(value, "end");
        Block block = Block::make(key, pieces, extras);
        CHECK(block.key() == key);
        CHECK(block.value() == value + "end");
        CHECK(block.has_room_for_extras() == (extras == Block::Extras::room));
        CHECK(block.extras() == nullptr);
        CHECK(block.taken_bytes() == Block::taken_bytes(key_bytes, pieces, extras));
        block.free();
        CHECK_FALSE(block);
      }
    }
  }
}

TEST_CASE("a key of 16 bytes and a value of 64 take 96 bytes") {
  Block block =
      Block::make(std::string(16, 'k'), short_value(std::string(64, 'v')), Block::Extras::none);
  CHECK(block.taken_bytes() == 96);
  block.free();
}

TEST_CASE("a value is overwritten by one for which the same is allocated") {
  Block block = Block::make("key", short_value("1234"), Block::Extras::none);
  CHECK(block.fits(0));
  CHECK_FALSE(block.fits(100));
  CHECK_FALSE(block.fits(shared_value_bytes_min));
  CHECK(block.fits(9));
  const std::uint64_t taken_bytes = block.taken_bytes();
  block.overwrite(block.value(), "56789");  // as `append` does
  CHECK(block.value() == "123456789");
  CHECK(block.key() == "key");
  CHECK(block.taken_bytes() == taken_bytes);
  block.overwrite("", "");
  CHECK(block.value().empty());
  block.free();
}

TEST_CASE("a long value is shared with others") {
  Quota quota(1'000'000);
  const std::string value(shared_value_bytes_min, 'v');
  Payload payload = make_payload(quota, value);
  Block block = Block::make("key", {{}, {}, payload}, Block::Extras::room);
  CHECK(block.is_shared());
  CHECK(block.key() == "key");
  CHECK(block.value() == value);
  CHECK(block.shared() == payload);
  CHECK_FALSE(block.fits(10));
  payload = nullptr;
  CHECK(quota.used_bytes() > value.size());
  block.let_go_of_shared();
  CHECK(quota.used_bytes() == 0);
  CHECK(block.value().empty());
  CHECK(block.key() == "key");
  block.free();
}
