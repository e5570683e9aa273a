#include "auth/credentials.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <variant>

#include <doctest/doctest.h>

#include "support/credential_text.h"

namespace {

using muster::ErrorCode;
using muster::auth::CertificateNames;
using muster::auth::CertificatePattern;
using muster::auth::Credential;
using muster::auth::Credentials;
using muster::auth::Identity;
using muster::auth::Key;
using muster::auth::key_text;
using muster::auth::Rights;
using muster::auth::UnixUser;
using muster::wire::Right;

Credentials credentials_of(const std::string& text) { return Credentials::read(text).value(); }

Key key_of(std::uint8_t number) { return Key::read(key_text(number)).value(); }

std::string name_of(const Credential* credential) {
  return credential == nullptr ? "nobody" : to_string(credential->grant.identity);
}

TEST_CASE("a line has an identity, its key, namespaces and rights") {
  const Credentials read = credentials_of("team/alice " + key_text(1) + " train,eval-* read,write");
  REQUIRE(read.all().size() == 1);
  const Credential& alice = read.all()[0];
  CHECK(alice.line == 1);
  CHECK(std::get<Key>(alice.proof) == key_of(1));
  CHECK(alice.grant.identity == Identity{"team", "alice"});
  CHECK(alice.grant.namespaces.allows("eval-2"));
  CHECK_FALSE(alice.grant.namespaces.allows("eval"));
  CHECK(alice.grant.rights == Rights{Right::read, Right::write});
  CHECK(alice.grant.limits == muster::auth::Limits());
  CHECK_FALSE(alice.grant.not_after);
}

TEST_CASE("all that may follow is read") {
  const Credentials read = credentials_of(
      "a " + key_text(1) +
      " * all requests=6 not-after=2027-01-31T00:00:00Z connections=1 sessions=2 groups=3 "
      "memory=64MiB");
  const muster::auth::Grant& grant = read.all().at(0).grant;
  CHECK(grant.limits.connections == 1);
  CHECK(grant.limits.sessions == 2);
  CHECK(grant.limits.groups == 3);
  CHECK(grant.limits.requests_per_second == 6);
  CHECK(grant.limits.memory_bytes == 64u << 20);
  CHECK(grant.not_after == muster::auth::read_utc_time("2027-01-31T00:00:00Z"));
}

TEST_CASE("sizes of memory have the units of other files") {
  const auto bytes_of = [](const std::string& size) {
    return credentials_of("a " + key_text(1) + " * all memory=" + size)
        .all()[0]
        .grant.limits.memory_bytes;
  };
  CHECK(bytes_of("1") == 1);
  CHECK(bytes_of("4096") == 4096);
  CHECK(bytes_of("64KiB") == 64u << 10);
  CHECK(bytes_of("3GiB") == std::uint64_t{3} << 30);
  CHECK(bytes_of("18446744073709551615") == UINT64_MAX);
  CHECK(bytes_of("17179869183GiB") == std::uint64_t{17179869183} << 30);
}

TEST_CASE("comments, empty lines and spaces count for nothing, but lines are numbered") {
  const Credentials read = credentials_of(
      "# who\n\n   \n  a   " + key_text(1) + "  *  all   # a comment = with words\n" + "#b " +
      key_text(2) + " * all\n" + "b " + key_text(3) + " * read");
  REQUIRE(read.all().size() == 2);
  CHECK(read.all()[0].line == 4);
  CHECK(read.all()[1].line == 6);
  CHECK(credentials_of("").all().empty());
  CHECK(credentials_of("\n# nobody\n").all().empty());
}

TEST_CASE("the tenant of all identities is known, if it is one") {
  const std::string first = "team/alice " + key_text(1) + " * all\n";
  CHECK(credentials_of(first).only_tenant() == "team");
  CHECK(credentials_of(first + "team/bob " + key_text(2) + " * all").only_tenant() == "team");
  CHECK(credentials_of(first + "bob " + key_text(2) + " * all").only_tenant().empty());
  CHECK(credentials_of("").only_tenant().empty());
}

TEST_CASE("two lines of one identity are two keys of it") {
  const Credentials read =
      credentials_of("a " + key_text(1) + " x all sessions=2\nb " + key_text(3) + " * all\na/a " +
                     key_text(2) + " x all sessions=2\n");
  REQUIRE(read.all().size() == 3);
  CHECK(read.all()[0].grant == read.all()[2].grant);
  CHECK_FALSE(is_same(read.all()[0].proof, read.all()[2].proof));
}

TEST_CASE("a key is found by itself alone") {
  const Credentials read = credentials_of("b " + key_text(9) + " * all\na " + key_text(1) +
                                          " * all\nunix:uid=0 * all as=c\n");
  CHECK(read.find(key_of(1)) == 1);
  CHECK(read.find(key_of(9)) == 0);
  CHECK_FALSE(read.find(key_of(2)));
  CHECK_FALSE(read.find(Key()));
  CHECK_FALSE(Credentials().find(key_of(1)));
}

TEST_CASE("a process is known by its user before its group") {
  const Credentials read = credentials_of(
      "unix:gid=100 * read as=team/guest\n"
      "unix:uid=1000 train all as=team/alice\n"
      "unix:uid=100 * all as=hundred\n");
  CHECK(name_of(read.find_unix(1000, 100)) == "team/alice");
  CHECK(name_of(read.find_unix(1001, 100)) == "team/guest");
  CHECK(name_of(read.find_unix(100, 1000)) == "hundred");
  CHECK(name_of(read.find_unix(1001, 1000)) == "nobody");
  CHECK(read.all()[1].grant.rights.has(Right::supervise));
}

TEST_CASE("a certificate is known by its alternative names, then by its common name") {
  const Credentials read = credentials_of(
      "certificate:CN=proxy * all as=proxy\n"
      "certificate:*.train.org * all as=any-node\n"
      "certificate:head.train.org * all as=head\n"
      "certificate:spiffe://train.org/eval * read as=eval\n"
      "certificate:CN=*.old.org * read as=old\n");
  CertificateNames names;
  names.common_name = "proxy";
  CHECK(name_of(read.find_certificate(names)) == "proxy");
  names.dns = {"n1.train.org"};
  CHECK(name_of(read.find_certificate(names)) == "any-node");
  names.dns.push_back("HEAD.train.org");
  CHECK(name_of(read.find_certificate(names)) == "head");
  CHECK(name_of(read.find_certificate({{}, {"spiffe://train.org/eval"}, {}})) == "eval");
  CHECK(name_of(read.find_certificate({{}, {}, "x.old.org"})) == "old");
}

TEST_CASE("a name of another kind, or that only looks similar, is nobody's") {
  const Credentials read = credentials_of(
      "certificate:*.train.org * all as=any-node\n"
      "certificate:CN=proxy * all as=proxy\n"
      "certificate:spiffe://train.org/Eval * read as=eval\n");
  for (const CertificateNames& names :
       {CertificateNames{{"train.org"}, {}, {}}, CertificateNames{{"a.b.train.org"}, {}, {}},
        CertificateNames{{"*.train.org"}, {}, {}}, CertificateNames{{"proxy"}, {}, {}},
        CertificateNames{{"CN=proxy"}, {}, {}}, CertificateNames{{}, {}, "n1.train.org"},
        CertificateNames{{}, {}, "Proxy"}, CertificateNames{{}, {"spiffe://train.org/eval"}, {}},
        CertificateNames{}}) {
    CHECK(read.find_certificate(names) == nullptr);
  }
}

TEST_CASE("a uid is not taken for a gid, nor a key for an empty one") {
  const Credentials read = credentials_of("unix:gid=5 * read as=five\n");
  CHECK(read.find(UnixUser{UnixUser::Kind::group, 5}) == 0);
  CHECK_FALSE(read.find(UnixUser{UnixUser::Kind::user, 5}));
  CHECK_FALSE(read.find(CertificatePattern{CertificatePattern::Kind::dns, false, "five"}));
}

TEST_CASE("as many lines as there may be are read, each with its own key") {
  std::string text;
  for (std::size_t line = 0; line < muster::auth::credentials_lines_max; ++line) {
    text += "unix:uid=" + std::to_string(line) + " * all as=u" + std::to_string(line) + "\n";
  }
  const Credentials read = credentials_of(text);
  REQUIRE(read.all().size() == muster::auth::credentials_lines_max);
  CHECK(name_of(read.find_unix(9999, 0)) == "u9999");
  const auto refused = Credentials::read(text + "#");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::too_large);
  CHECK(refused.error().limit == muster::auth::credentials_lines_max);
  CHECK(refused.error().actual == muster::auth::credentials_lines_max + 1);
}

TEST_CASE("a file of more than a mebibyte is refused") {
  const std::string comment = "#" + std::string(1022, 'x') + "\n";
  std::string text;
  while (text.size() < muster::auth::credentials_bytes_max) text += comment;
  REQUIRE(text.size() == muster::auth::credentials_bytes_max);
  CHECK(Credentials::read(text));
  const auto refused = Credentials::read(text + "\n");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::too_large);
  CHECK(refused.error().limit == muster::auth::credentials_bytes_max);
  CHECK(refused.error().actual == muster::auth::credentials_bytes_max + 1);
}

TEST_CASE("the example in the documents is read, and has each kind of line and field") {
  const char* const path = std::getenv("MUSTER_CREDENTIALS_EXAMPLE");
  REQUIRE(path != nullptr);
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  REQUIRE(file);
  const Credentials read = credentials_of(text.str());
  std::set<std::string> kinds;
  Rights rights;
  muster::auth::Limits limits;
  bool has_end = false;
  for (const Credential& each : read.all()) {
    const std::string line = muster::auth::line_of(each);
    const bool is_key = std::holds_alternative<Key>(each.proof);
    kinds.insert(is_key ? "key" : line.substr(0, line.find_first_of(":=", 5)));
    if (line.find("certificate:*.") == 0) kinds.insert("any label");
    if (line.find("certificate:CN=") == 0) kinds.insert("common name");
    if (line.find("://") != std::string::npos) kinds.insert("URI");
    for (const Right right : {Right::read, Right::write, Right::join, Right::observe,
                              Right::supervise, Right::admin, Right::peer}) {
      if (each.grant.rights.has(right)) rights.add(right);
    }
    limits.connections |= each.grant.limits.connections;
    limits.sessions |= each.grant.limits.sessions;
    limits.groups |= each.grant.limits.groups;
    limits.requests_per_second |= each.grant.limits.requests_per_second;
    limits.memory_bytes |= each.grant.limits.memory_bytes;
    has_end = has_end || each.grant.not_after;
  }
  CHECK(kinds == std::set<std::string>{"key", "unix:uid", "unix:gid", "certificate", "any label",
                                       "common name", "URI"});
  CHECK(rights == Rights{Right::admin, Right::peer});
  CHECK(has_end);
  for (const std::uint64_t limit :
       {std::uint64_t{limits.connections}, std::uint64_t{limits.sessions},
        std::uint64_t{limits.groups}, std::uint64_t{limits.requests_per_second},
        limits.memory_bytes}) {
    CHECK(limit > 0);
  }
  CHECK(muster::auth::text_of(credentials_of(muster::auth::text_of(read))) ==
        muster::auth::text_of(read));
}

}  // namespace
