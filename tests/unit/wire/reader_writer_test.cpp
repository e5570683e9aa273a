#include <limits>

#include <doctest/doctest.h>

#include "wire/reader.h"
#include "wire/writer.h"

using muster::wire::Reader;
using muster::wire::Writer;
using namespace std::string_view_literals;

TEST_CASE("numbers travel little-endian and come back as they were") {
  std::string bytes;
  Writer writer(bytes);
  writer.u8(0x01);
  writer.u16(0x0302);
  writer.u32(0x07060504);
  writer.u64(0x0f0e0d0c0b0a0908);
  writer.i32(-2);
  writer.i64(std::numeric_limits<std::int64_t>::min());
  CHECK(bytes ==
        "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
        "\xfe\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x80"sv);

  Reader reader(bytes);
  CHECK(reader.u8() == 0x01);
  CHECK(reader.u16() == 0x0302);
  CHECK(reader.u32() == 0x07060504);
  CHECK(reader.u64() == 0x0f0e0d0c0b0a0908);
  CHECK(reader.i32() == -2);
  CHECK(reader.i64() == std::numeric_limits<std::int64_t>::min());
  CHECK(reader.ok());
  CHECK(reader.at_end());
}

TEST_CASE("byte strings may hold any byte and may be empty") {
  std::string bytes;
  Writer writer(bytes);
  writer.bytes("a\0b"sv);
  writer.bytes("");
  writer.raw("rest");
  Reader reader(bytes);
  CHECK(reader.bytes() == "a\0b"sv);
  CHECK(reader.bytes() == "");
  CHECK(reader.raw(4) == "rest");
  CHECK(reader.ok());
}

TEST_CASE("a length can be patched in when it is known") {
  std::string bytes = "head";
  Writer writer(bytes);
  const std::size_t at = writer.position();
  writer.u32(0);
  writer.raw("body");
  writer.patch_u32(at, 4);
  CHECK(bytes ==
        "head\x04\x00\x00\x00"
        "body"sv);
}

TEST_CASE("a reader that failed once yields zeros for good") {
  Reader reader("\x01\x02\x03"sv);
  CHECK(reader.u32() == 0);
  CHECK_FALSE(reader.ok());
  CHECK(reader.u8() == 0);
  CHECK(reader.u64() == 0);
  CHECK(reader.bytes().empty());
  CHECK(reader.raw(1).empty());
  CHECK(reader.count(1) == 0);
  CHECK(reader.at_end());
  CHECK_FALSE(reader.ok());
}

TEST_CASE("a byte string that declares more than is there fails") {
  Reader all(
      "\xff\xff\xff\xff"
      "abc"sv);
  CHECK(all.bytes().empty());
  CHECK_FALSE(all.ok());
  Reader one(
      "\x04\x00\x00\x00"
      "abc"sv);
  CHECK(one.bytes().empty());
  CHECK_FALSE(one.ok());
}

TEST_CASE("a count that cannot be true of the bytes that are left fails") {
  Reader true_count(
      "\x02\x00\x00\x00"
      "12345678"sv);
  CHECK(true_count.count(4) == 2);
  CHECK(true_count.ok());
  Reader one_too_many(
      "\x03\x00\x00\x00"
      "12345678"sv);
  CHECK(one_too_many.count(4) == 0);
  CHECK_FALSE(one_too_many.ok());
  Reader largest(
      "\xff\xff\xff\xff"
      "12345678"sv);
  CHECK(largest.count(1) == 0);
  CHECK_FALSE(largest.ok());
}

TEST_CASE("a list has at most a million items whatever its bytes allow") {
  std::string bytes;
  Writer(bytes).u32(muster::wire::items_max + 1);
  bytes.resize(4 + muster::wire::items_max + 1);
  Reader reader(bytes);
  CHECK(reader.count(1) == 0);
  CHECK_FALSE(reader.ok());
}
