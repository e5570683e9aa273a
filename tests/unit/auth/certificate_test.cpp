#include "auth/certificate.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using muster::auth::CertificateNames;
using muster::auth::patterns_of;
using muster::auth::read_certificate_pattern;
using Kind = muster::auth::CertificatePattern::Kind;

std::vector<std::string> texts_of(const CertificateNames& names) {
  std::vector<std::string> texts;
  for (const auto& pattern : patterns_of(names)) texts.push_back(to_string(pattern));
  return texts;
}

TEST_CASE("a pattern is a DNS name, a URI or a common name") {
  CHECK(read_certificate_pattern("node1.example.org")->kind == Kind::dns);
  CHECK(read_certificate_pattern("spiffe://example.org/train")->kind == Kind::uri);
  CHECK(read_certificate_pattern("CN=alice")->kind == Kind::common_name);
  CHECK(read_certificate_pattern("CN=urn:alice")->kind == Kind::common_name);
}

TEST_CASE("a pattern is written as it is read, DNS names in small letters") {
  for (const char* const text : {"node1.example.org", "*.example.org", "spiffe://example.org/Train",
                                 "CN=Alice", "CN=*.Example.org", "CN=alice@example.org"}) {
    CAPTURE(text);
    const auto pattern = read_certificate_pattern(text);
    REQUIRE(pattern);
    CHECK(to_string(*pattern) == text);
  }
  CHECK(to_string(*read_certificate_pattern("Node1.Example.ORG")) == "node1.example.org");
}

TEST_CASE("what is no pattern is refused") {
  for (const char* const wrong :
       {"", "*", "*.", "CN=", "CN=*", "CN=*.", ".example.org", "a..b", "*.*.example.org",
        "*example.org", "node*.example.org", "*.spiffe://x", "spiffe://*", "a/b", "*..org"}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_certificate_pattern(wrong));
  }
}

TEST_CASE("subject alternative names come before the common name, whole ones before the others") {
  CertificateNames names;
  names.dns = {"a.x.org", "B.Y.org"};
  names.uris = {"spiffe://x/Job"};
  names.common_name = "c.z.org";
  CHECK(texts_of(names) == std::vector<std::string>{"a.x.org", "b.y.org", "spiffe://x/Job",
                                                    "*.x.org", "*.y.org", "CN=c.z.org",
                                                    "CN=*.z.org"});
  CHECK(texts_of({}).empty());
}

TEST_CASE("one label comes before a dot, and it is a label") {
  CertificateNames names;
  names.dns = {"a.b.org", ".b.org", "localhost", "*.c.org", std::string("d\0.e.org", 8)};
  const std::vector<std::string> texts = texts_of(names);
  CHECK(texts.size() == 6);
  CHECK(texts.back() == "*.b.org");
  CHECK(texts[0] == "a.b.org");
}

TEST_CASE("a name with a zero in it is not the name before the zero") {
  CertificateNames names;
  names.common_name = std::string("alice\0.evil.org", 15);
  const auto patterns = patterns_of(names);
  REQUIRE(patterns.size() == 1);
  CHECK_FALSE(patterns[0] == *read_certificate_pattern("CN=alice"));
}

}  // namespace
