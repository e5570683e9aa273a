#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "auth/difference.h"
#include "auth/key_ids.h"
#include "support/credential_text.h"

// What sessions are found by when the file has changed: ids of keys, and what became of each line.

namespace {

using muster::ErrorCode;
using muster::auth::Credentials;
using muster::auth::Difference;
using muster::auth::Identity;
using muster::auth::Key;
using muster::auth::key_text;
using muster::auth::KeyId;
using muster::auth::KeyIds;
using muster::auth::Successor;
using Fate = muster::auth::Successor::Kind;

Credentials read_text(const std::string& text) { return Credentials::read(text).value(); }

Difference difference(const std::string& older, const std::string& newer) {
  return difference_of(read_text(older), read_text(newer));
}

/// The first byte of the key, which is another one for each number.
KeyId first_byte(const Key& key) {
  KeyId id;
  id.bytes[7] = static_cast<std::uint8_t>(key.bytes()[0]);
  return id;
}

KeyId id_of(std::uint8_t number) { return first_byte(Key::read(key_text(number)).value()); }

const std::string alice_1 = "alice " + key_text(1) + " x all\n";
const std::string alice_2 = "alice " + key_text(2) + " x all\n";
const std::string bob = "bob " + key_text(3) + " * read\n";

TEST_CASE("each key is found by its id") {
  const Credentials credentials =
      read_text("unix:uid=1 * all as=c\n" + bob + alice_2 + "# no\n" + alice_1);
  const KeyIds ids = KeyIds::of(credentials, first_byte).value();
  CHECK(ids.find(id_of(3)) == 1);
  CHECK(ids.find(id_of(2)) == 2);
  CHECK(ids.find(id_of(1)) == 3);
  CHECK_FALSE(ids.find(id_of(4)));
  CHECK_FALSE(ids.find(KeyId()));
  CHECK_FALSE(KeyIds().find(id_of(1)));
}

TEST_CASE("two keys of one id are refused") {
  const auto ids = KeyIds::of(read_text(alice_1 + bob), [](const Key&) { return KeyId(); });
  REQUIRE_FALSE(ids);
  CHECK(ids.error().code == ErrorCode::invalid_argument);
  CHECK(KeyIds::of(read_text(bob), [](const Key&) { return KeyId(); }));
}

TEST_CASE("of a file that has the same lines nothing has changed") {
  const Difference none = difference(alice_1 + bob, "# moved\n" + bob + alice_1);
  CHECK(none.identities_gone.empty());
  CHECK(none.successors == std::vector<Successor>{{Fate::same, 1}, {Fate::same, 0}});
}

TEST_CASE("an identity without a line is gone, with its keys") {
  const Difference gone = difference(alice_1 + bob + alice_2, bob);
  CHECK(gone.identities_gone == std::vector<Identity>{{"alice", "alice"}});
  CHECK(gone.successors ==
        std::vector<Successor>{{Fate::gone, 0}, {Fate::same, 0}, {Fate::gone, 0}});
}

TEST_CASE("a key that was replaced is gone, and its identity is not") {
  const Difference rotated = difference(alice_1 + bob, alice_2 + bob);
  CHECK(rotated.identities_gone.empty());
  CHECK(rotated.successors == std::vector<Successor>{{Fate::gone, 0}, {Fate::same, 1}});
  const Difference added = difference(alice_1, alice_1 + alice_2);
  CHECK(added.successors == std::vector<Successor>{{Fate::same, 0}});
}

TEST_CASE("a grant has changed if any part of it has") {
  const std::string key = "a " + key_text(1);
  for (const char* const rest : {" y all", " x read", " x all groups=1", " x all memory=1",
                                 " x all not-after=2027-01-31T00:00:00Z"}) {
    CAPTURE(rest);
    const Difference changed = difference(key + " x all", bob + key + rest);
    CHECK(changed.successors == std::vector<Successor>{{Fate::changed, 1}});
    CHECK(changed.identities_gone.empty());
  }
}

TEST_CASE("a key, user or certificate of another identity now is gone") {
  for (const auto& [older, newer] : std::vector<std::pair<std::string, std::string>>{
           {"a " + key_text(1) + " * all", "b " + key_text(1) + " * all"},
           {"a " + key_text(1) + " * all", "t/a " + key_text(1) + " * all"},
           {"unix:uid=1 * all as=a", "unix:uid=1 * all as=b"},
           {"certificate:x.org * all as=a", "certificate:x.org * all as=b"}}) {
    const Difference taken = difference(older, newer);
    CHECK(taken.successors == std::vector<Successor>{{Fate::gone, 0}});
    CHECK(taken.identities_gone == std::vector<Identity>{{"a", "a"}});
  }
}

TEST_CASE("who is known by another proof still is not gone, and that line is") {
  const Difference moved =
      difference(alice_1 + "unix:uid=1 * all as=alice", "unix:gid=1 * all as=alice");
  CHECK(moved.identities_gone.empty());
  CHECK(moved.successors == std::vector<Successor>{{Fate::gone, 0}, {Fate::gone, 0}});
}

}  // namespace
