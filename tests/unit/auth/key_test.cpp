#include "auth/key.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "auth/wipe.h"
#include "support/credential_text.h"

namespace {

using muster::ErrorCode;
using muster::auth::Key;

std::string different_bytes(std::size_t count) {
  std::string bytes;
  for (std::size_t index = 0; index < count; ++index) bytes += static_cast<char>(index * 5 + 3);
  return bytes;
}

Key some_key() { return Key::of(different_bytes(32)).value(); }

bool is_refused(const muster::Result<Key>& read) {
  return !read && read.error().code == ErrorCode::invalid_argument;
}

/// Whether any eight bytes of the key are still where it was. The page of its bytes stays.
bool has_part_of_key(const char* there) {
  const std::string key = different_bytes(32);
  const std::string held(there, key.size());
  for (std::size_t at = 0; at + 8 <= key.size(); at += 8) {
    if (held.find(key.substr(at, 8)) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("base64 of every length is written and read again") {
  for (std::size_t size = Key::bytes_min; size <= Key::bytes_max; ++size) {
    const std::string bytes = different_bytes(size);
    const Key key = Key::of(bytes).value();
    CHECK(key.bytes() == bytes);
    const std::string text = key.base64();
    CHECK(text.size() == (size + 2) / 3 * 4);
    CHECK(Key::read(text).value() == key);
    CHECK(Key::read(text.substr(0, text.find('='))).value() == key);
  }
}

TEST_CASE("base64 is that of RFC 4648") {
  const std::string bytes = "Many hands make light work.\xff\xfe\xfd\xfb\xef";
  CHECK(Key::of(bytes).value().base64() == "TWFueSBoYW5kcyBtYWtlIGxpZ2h0IHdvcmsu//79++8=");
  CHECK(Key::read("TWFueSBoYW5kcyBtYWtlIGxpZ2h0IHdvcmsu//79++8").value().bytes() == bytes);
}

TEST_CASE("what is not base64 in its one form is refused") {
  const std::string text = some_key().base64();  // 43 digits and one "="
  REQUIRE(Key::read(text));
  for (const std::string& wrong :
       {text + "=", text + "A", " " + text, text + "\n", text.substr(0, 20) + " " + text.substr(20),
        "=" + text, text.substr(0, 42) + "=" + text.substr(42, 1), text.substr(0, 42) + "==",
        text.substr(0, 40) + "-_A=", text.substr(0, 10) + "=" + text.substr(11), std::string()}) {
    CAPTURE(wrong);
    CHECK(is_refused(Key::read(wrong)));
  }
}

TEST_CASE("bits behind the last byte are zero, so that a key has one text") {
  std::string text = some_key().base64();
  text[42] = static_cast<char>(text[42] + 1);  // still a digit
  CHECK(is_refused(Key::read(text)));
}

TEST_CASE("keys of other lengths are refused") {
  CHECK(is_refused(Key::of(different_bytes(31))));
  CHECK(is_refused(Key::of(different_bytes(65))));
  CHECK(is_refused(Key::of("")));
  CHECK(is_refused(Key::read(std::string(86, 'A') + "AA")));  // 66 bytes
  CHECK(is_refused(Key::read(std::string(4096, 'A') + "Zz09")));
  CHECK(Key::of(different_bytes(64)));
}

TEST_CASE("keys of few different bytes are refused") {
  CHECK(is_refused(Key::of(std::string(32, 'x'))));
  CHECK(is_refused(Key::of(std::string(32, '\0'))));
  CHECK(is_refused(Key::of(std::string(26, 'x') + "abcdef")));
  CHECK(Key::of(std::string(25, 'x') + "abcdefg"));
  CHECK(is_refused(Key::read(std::string(43, 'A'))));
}

TEST_CASE("a refusal has nothing of the key") {
  const std::string secret = "abcabcabcabcabcabcabcabcabcabcabcabc";
  for (const auto& refused : {Key::of(secret), Key::read(secret), Key::read(secret + "!")}) {
    CHECK(refused.error().message().find("abcabc") == std::string::npos);
  }
}

TEST_CASE("a key that is moved stays in its place, and its source is empty") {
  Key key = some_key();
  const char* const there = key.bytes().data();
  REQUIRE(has_part_of_key(there));
  Key moved = std::move(key);
  CHECK(key.is_empty());
  CHECK(moved == some_key());
  Key assigned;
  assigned = std::move(moved);
  CHECK(moved.is_empty());
  CHECK(assigned == some_key());
  CHECK(assigned.bytes().data() == there);
}

TEST_CASE("a key that is replaced or destroyed is overwritten") {
  Key replaced = some_key();
  const char* const there = replaced.bytes().data();
  replaced = Key();
  CHECK(replaced.is_empty());
  CHECK_FALSE(has_part_of_key(there));
  auto destroyed = std::make_unique<Key>(some_key());
  const char* const its_place = destroyed->bytes().data();
  REQUIRE(has_part_of_key(its_place));
  destroyed.reset();
  CHECK_FALSE(has_part_of_key(its_place));
}

TEST_CASE("a key that is assigned to itself stays") {
  Key key = some_key();
  Key& same = key;
  key = std::move(same);
  CHECK(key == some_key());
}

TEST_CASE("keys are equal when all of their bytes are") {
  CHECK(some_key() == some_key());
  const std::string bytes = different_bytes(40);
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    std::string other = bytes;
    other[index] = static_cast<char>(other[index] ^ 1);
    CAPTURE(index);
    CHECK_FALSE(Key::of(bytes).value() == Key::of(other).value());
  }
  CHECK_FALSE(Key::of(bytes).value() == Key::of(bytes.substr(0, 39)).value());
  CHECK(Key() == Key());
}

TEST_CASE("a text that is wiped is overwritten and empty") {
  std::string text = some_key().base64();
  const char* const memory = text.data();
  const std::size_t size = text.size();
  muster::auth::wipe(text);
  CHECK(text.empty());
  CHECK(std::all_of(memory, memory + size, [](char byte) { return byte == 0; }));
  std::string empty;
  muster::auth::wipe(empty);
  CHECK(empty.empty());
}

static_assert(!std::is_copy_constructible_v<Key> && !std::is_copy_assignable_v<Key>);
// Else a vector that grows would copy, or could not.
static_assert(std::is_nothrow_move_constructible_v<Key>);
static_assert(std::is_nothrow_move_constructible_v<muster::auth::Credential>);

}  // namespace
