#include "auth/problems.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "auth/credentials.h"
#include "support/credential_text.h"

namespace {

using muster::ErrorCode;
using muster::auth::Credentials;
using muster::auth::Fault;
using muster::auth::key_text;
using muster::auth::Problem;

std::vector<Problem> problems_of(const std::string& text) {
  return Credentials::read_with_problems(text).problems;
}

/// The faults of a text of one line.
std::vector<Fault> faults_of(const std::string& line) {
  std::vector<Fault> faults;
  for (const Problem& problem : problems_of(line)) {
    CHECK(problem.line == 1);
    faults.push_back(problem.fault);
  }
  return faults;
}

using Faults = std::vector<Fault>;

std::string key_line(const std::string& rest) { return "a " + key_text(1) + " " + rest; }

TEST_CASE("each field of a key's line is checked") {
  CHECK(faults_of(key_line("* all")).empty());
  CHECK(faults_of("a b/c:d " + key_text(1) + " *") == Faults{Fault::bad_key, Fault::bad_rights});
  CHECK(faults_of("a/b/c " + key_text(1) + " * all") == Faults{Fault::bad_identity});
  CHECK(faults_of("a AAAA * all") == Faults{Fault::bad_key});
  const std::string token = "muster-http-" + std::string(43, 'A');
  const std::string user = "unix:uid=1 * all as=";
  CHECK(faults_of(token + " " + key_text(1) + " * all") == Faults{Fault::secret_identity});
  CHECK(faults_of(key_text(1) + " " + key_text(2) + " * all") == Faults{Fault::secret_identity});
  CHECK(faults_of(user + token) == Faults{Fault::secret_identity});
  CHECK(faults_of(user + "a/" + token) == Faults{Fault::secret_identity});
  CHECK(faults_of("a " + std::string(43, 'A') + " * all") == Faults{Fault::bad_key});
  CHECK(faults_of(key_line("** all")) == Faults{Fault::bad_namespaces});
  CHECK(faults_of(key_line("* everything")) == Faults{Fault::bad_rights});
  CHECK(faults_of("a " + key_text(1) + " all") == Faults{Fault::fields_missing});
  CHECK(faults_of("a") == Faults{Fault::fields_missing});
  CHECK(faults_of("unix:uid=1 as=a") == Faults{Fault::fields_missing});
}

TEST_CASE("each field that may follow is checked") {
  CHECK(faults_of(key_line("* all color=red")) == Faults{Fault::unknown_field});
  CHECK(faults_of(key_line("* all sessions")) == Faults{Fault::unknown_field});
  CHECK(faults_of(key_line("* all Sessions=1")) == Faults{Fault::unknown_field});
  CHECK(faults_of(key_line("* all sessions=1 sessions=1")) == Faults{Fault::repeated_field});
  CHECK(faults_of(key_line("* all not-after=2027-01-31")) == Faults{Fault::bad_not_after});
  for (const char* const name : {"connections", "sessions", "groups", "requests"}) {
    for (const char* const wrong : {"", "0", "-1", "+1", "1.5", "1k", "4294967296", "x", "1=1"}) {
      const std::string field = std::string(name) + "=" + wrong;
      CAPTURE(field);
      CHECK(faults_of(key_line("* all " + field)) == Faults{Fault::bad_count});
    }
    CHECK(faults_of(key_line("* all " + std::string(name) + "=4294967295")).empty());
  }
  for (const char* const wrong : {"", "0", "0GiB", "-1", "1MB", "1 MiB", "17179869184GiB", "MiB"}) {
    CAPTURE(wrong);
    CHECK_FALSE(faults_of(key_line("* all memory=" + std::string(wrong))).empty());
  }
  CHECK(faults_of(key_line("* all memory=17179869184GiB")) == Faults{Fault::bad_memory});
}

TEST_CASE("a Unix user is a number, and somebody") {
  CHECK(faults_of("unix:uid=4294967294 * all as=a").empty());
  for (const char* const wrong : {"unix:", "unix:uid", "unix:uid=", "unix:uid=root", "unix:uid=-1",
                                  "unix:uid=4294967295", "unix:pid=1", "unix:uid=1,2"}) {
    CAPTURE(wrong);
    CHECK(faults_of(wrong + std::string(" * all as=a")) == Faults{Fault::bad_unix_user});
  }
  CHECK(faults_of("unix:uid=1 * all") == Faults{Fault::as_missing});
  CHECK(faults_of("unix:uid=1 * all as=") == Faults{Fault::bad_as});
  CHECK(faults_of("unix:uid=1 * all as=a/b/c") == Faults{Fault::bad_as});
  CHECK(faults_of("unix:uid=1 " + key_text(1) + " * all as=a") ==
        Faults{Fault::bad_rights, Fault::unknown_field});
}

TEST_CASE("a certificate's line has a pattern and an identity") {
  CHECK(faults_of("certificate:*.x.org * all as=a").empty());
  CHECK(faults_of("certificate: * all as=a") == Faults{Fault::bad_certificate});
  CHECK(faults_of("certificate:* * all as=a") == Faults{Fault::bad_certificate});
  CHECK(faults_of("certificate:x.org * all") == Faults{Fault::as_missing});
  CHECK(faults_of(key_line("* all as=b")) == Faults{Fault::as_of_key});
}

TEST_CASE("no control character stands in a line, also not in a comment") {
  for (const char byte : {'\t', '\0', '\x1b', '\x7f'}) {
    CAPTURE(static_cast<int>(byte));
    CHECK(faults_of(key_line("* all") + byte) == Faults{Fault::control_character});
    CHECK(faults_of("# " + std::string(1, byte)) == Faults{Fault::control_character});
  }
  CHECK(faults_of("# Z\xc3\xbcrich").empty());
}

TEST_CASE("lines may end with CR LF") {
  CHECK(faults_of(key_line("* all") + "\r\n# a comment\r\n\r\n").empty());
  CHECK(faults_of(key_line("* all") + "\r\r\n") == Faults{Fault::control_character});
  CHECK(faults_of("\r" + key_line("* all")) == Faults{Fault::control_character});
}

TEST_CASE("a line has at most 1024 bytes") {
  const std::string line = key_line("* all ");
  CHECK(faults_of(line + std::string(1024 - line.size(), ' ')).empty());
  CHECK(faults_of(line + std::string(1025 - line.size(), ' ')) == Faults{Fault::line_too_long});
  CHECK(faults_of("#" + std::string(1024, 'x')) == Faults{Fault::line_too_long});
}

TEST_CASE("no two lines have the same key, user or pattern") {
  const std::string key = key_text(1);
  const auto same = [](std::size_t line, std::size_t other) {
    return std::vector<Problem>{{line, Fault::same_proof, other}};
  };
  CHECK(problems_of("a " + key + " * all\n\nb " + key + " * read\n") == same(3, 1));
  CHECK(problems_of("a " + key + " * all\na " + key + " * all\n") == same(2, 1));
  CHECK(problems_of("a " + key + " * all\nb " + key.substr(0, 43) + " * all\n") == same(2, 1));
  CHECK(problems_of("unix:uid=1 * all as=a\nunix:uid=01 * all as=b\n") == same(2, 1));
  CHECK(problems_of("unix:uid=1 * all as=a\nunix:gid=1 * all as=b\n").empty());
  CHECK(problems_of("certificate:x.org * all as=a\ncertificate:X.org * all as=b\n") == same(2, 1));
  CHECK(problems_of("certificate:x.org * all as=a\ncertificate:*.x.org * all as=b\n"
                    "certificate:CN=x.org * all as=c\ncertificate:CN=X.org * all as=d\n")
            .empty());
}

TEST_CASE("all but the keys of an identity agrees") {
  const std::string first = "a " + key_text(1) + " x all sessions=2\n";
  const auto second = [&](const std::string& rest) {
    return problems_of(first + "b " + key_text(9) + " * all\na " + key_text(2) + " " + rest + "\n");
  };
  const std::vector<Problem> differs = {{3, Fault::differs, 1}};
  CHECK(second("x all sessions=2").empty());
  CHECK(second("y all sessions=2") == differs);
  CHECK(second("x read sessions=2") == differs);
  CHECK(second("x all sessions=2 not-after=2027-01-31T00:00:00Z") == differs);
  CHECK(second("x all") ==
        std::vector<Problem>{{3, Fault::limits_differ, 1}, {3, Fault::differs, 1}});
}

TEST_CASE("an identity has at most two keys") {
  std::string text;
  for (std::uint8_t number = 1; number <= 4; ++number) text += "a " + key_text(number) + " * all\n";
  CHECK(problems_of(text) ==
        std::vector<Problem>{{3, Fault::third_key, 1}, {4, Fault::third_key, 1}});
}

TEST_CASE("an identity has the same limits however it is proved, and may have other rights") {
  const std::string key = "a " + key_text(1) + " x all groups=2\n";
  CHECK(problems_of(key + "unix:uid=1 y read as=a groups=2\n").empty());
  CHECK(problems_of(key + "unix:uid=1 y read as=a\n") ==
        std::vector<Problem>{{2, Fault::limits_differ, 1}});
}

TEST_CASE("every problem is told by its line, and 20 of them in the error") {
  std::string text;
  for (int line = 0; line < 25; ++line) text += line == 3 ? "# fine\n" : "wrong\n";
  CHECK(problems_of(text).size() == 24);
  const auto read = Credentials::read(text);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::invalid_argument);
  CHECK(read.error().actual == 24);
  const std::string& detail = read.error().detail;
  CHECK(detail.find("line 1: ") == 0);
  CHECK(detail.find("line 4: ") == std::string::npos);
  CHECK(detail.find("line 21: ") != std::string::npos);
  CHECK(detail.find("line 22: ") == std::string::npos);
}

TEST_CASE("problems are told in the order of lines") {
  const auto read =
      Credentials::read("a " + key_text(1) + " * all\nb " + key_text(1) + " * all\nwrong\n");
  REQUIRE_FALSE(read);
  const std::string& detail = read.error().detail;
  CHECK(detail.find("line 2: ") == 0);
  CHECK(detail.find("line 3: ") != std::string::npos);
}

TEST_CASE("one bad line makes the whole file refused") {
  CHECK(Credentials::read(key_line("* all")));
  CHECK_FALSE(Credentials::read(key_line("* all") + "\nwrong"));
}

TEST_CASE("no message has a key, in whichever place it stands") {
  const std::string key = key_text(1);
  for (const std::string& text :
       {key + " train read,write", key + " " + key + " * all", "a " + key + "A * all",
        "a " + key + " * " + key, "a " + key + " * all " + key, "a " + key + " * all as=" + key,
        "unix:" + key + " * all as=a", "certificate:" + key + "= * all as=a",
        "unix:uid=1 * all as=" + key, "a " + key + " * all\nb " + key + " * all",
        "a " + key + " * all memory=" + key}) {
    CAPTURE(text);
    const auto read = Credentials::read(text);
    REQUIRE_FALSE(read);
    CHECK(read.error().message().find(key.substr(0, 8)) == std::string::npos);
  }
}

}  // namespace
