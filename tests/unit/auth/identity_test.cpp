#include "auth/identity.h"

#include <string>

#include <doctest/doctest.h>

namespace {

using muster::auth::Identity;
using muster::auth::NamespacePatterns;
using muster::auth::read_identity;

NamespacePatterns patterns_from(const char* text) {
  const auto read = NamespacePatterns::read(text);
  REQUIRE(read);
  return *read;
}

TEST_CASE("an identity is a tenant and a name, or one name for both") {
  CHECK(read_identity("team/alice") == Identity{"team", "alice"});
  CHECK(read_identity("alice") == Identity{"alice", "alice"});
  CHECK(read_identity("A-z_0.9/x") == Identity{"A-z_0.9", "x"});
  const std::string longest(64, 'a');
  CHECK(read_identity(longest + "/" + longest) == Identity{longest, longest});
}

TEST_CASE("what is no identity is refused") {
  const std::string too_long(65, 'a');
  for (const std::string& wrong :
       {std::string(), std::string("/"), std::string("a/"), std::string("/a"), std::string("a/b/c"),
        std::string("a b"), std::string("a:b"), std::string("a\n"), std::string("a*"),
        std::string("\xc3\xa4"), std::string("a\0", 2), too_long, "a/" + too_long,
        too_long + "/a"}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_identity(wrong));
  }
}

TEST_CASE("an identity is written as it is read") {
  CHECK(to_string(Identity{"team", "alice"}) == "team/alice");
  CHECK(to_string(Identity{"alice", "alice"}) == "alice");
}

TEST_CASE("a pattern allows a name, those that begin so, or all") {
  CHECK(patterns_from("train").allows("train"));
  CHECK_FALSE(patterns_from("train").allows("train2"));
  CHECK_FALSE(patterns_from("train").allows("trai"));
  CHECK_FALSE(patterns_from("train").allows(""));
  CHECK(patterns_from("train-*").allows("train-"));
  CHECK(patterns_from("train-*").allows("train-7"));
  CHECK_FALSE(patterns_from("train-*").allows("train"));
  CHECK_FALSE(patterns_from("train-*").allows("a-train-7"));
  CHECK(patterns_from("*").allows("train"));
  CHECK(patterns_from("*").allows(""));
}

TEST_CASE("quotes are the default namespace, and no other") {
  CHECK(patterns_from("\"\"").allows(""));
  CHECK_FALSE(patterns_from("\"\"").allows("a"));
  CHECK_FALSE(patterns_from("\"\"").allows("\"\""));
}

TEST_CASE("of several patterns each allows its own") {
  const NamespacePatterns some = patterns_from("a,b-*,\"\"");
  CHECK(some.allows("a"));
  CHECK(some.allows("b-1"));
  CHECK(some.allows(""));
  CHECK_FALSE(some.allows("b"));
  CHECK_FALSE(NamespacePatterns().allows(""));
}

TEST_CASE("what is no pattern is refused") {
  const std::string longest(64, 'n');
  CHECK(NamespacePatterns::read(longest));
  CHECK(NamespacePatterns::read(longest + "*"));
  for (const std::string& wrong :
       {std::string(), std::string(","), std::string("a,"), std::string(",a"), std::string("**"),
        std::string("*a"), std::string("a*b"), std::string("a b"), std::string("\"a\""),
        std::string("\"\"*"), std::string("a\x1b"), std::string("\xff"),
        std::string("\xe2\x80\xae"), longest + "n", longest + "n*"}) {
    CAPTURE(wrong);
    CHECK_FALSE(NamespacePatterns::read(wrong));
  }
}

TEST_CASE("patterns are written as they are read") {
  for (const char* const text :
       {"a", "a*", "*", "\"\"", "\"\",a", "a,\"\",b*", "Z\xc3\xbcrich/*"}) {
    CHECK(to_string(patterns_from(text)) == text);
    CHECK(patterns_from(to_string(patterns_from(text)).c_str()) == patterns_from(text));
  }
  CHECK_FALSE(patterns_from("a") == patterns_from("a*"));
}

}  // namespace
