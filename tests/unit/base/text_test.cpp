#include "base/text.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/secret/secret_file.h"
#include "base/secret/unshown.h"
#include "muster/log.h"
#include "support/temporary_folder.h"

namespace {

using muster::printable;
using muster::RankRange;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
namespace base = muster::base;
using muster::ErrorCode;

TEST_CASE("a measured time is rounded to what tells it apart") {
  CHECK(base::rounded(microseconds(-5)) == "0 us");
  CHECK(base::rounded(microseconds(999)) == "999 us");
  CHECK(base::rounded(microseconds(1499)) == "1 ms");
  CHECK(base::rounded(microseconds(999'499)) == "999 ms");
  CHECK(base::rounded(microseconds(999'500)) == "1.0 s");
  CHECK(base::rounded(milliseconds(1550)) == "1.6 s");
  CHECK(base::rounded(hours(1)) == "3600.0 s");
}

TEST_CASE("a time that was set is told exactly") {
  CHECK(base::in_seconds(seconds(30)) == "30 s");
  CHECK(base::in_seconds(milliseconds(250)) == "0.25 s");
  CHECK(base::in_seconds(microseconds(1)) == "0.000001 s");
  CHECK(base::in_seconds(seconds(0)) == "0 s");
}

TEST_CASE("what a terminal obeys is made visible, and so is what is no UTF-8; the rest stays") {
  CHECK(printable("a\nb\x7f\x1b[31m") == "a\\x0ab\\x7f\\x1b[31m");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("Zürich 東京 🚀 \\ '") == "Zürich 東京 🚀 \\ '");
  CHECK(printable("\u0080\u009b\u009f\u00a0") == "\\u0080\\u009b\\u009f\u00a0");
  CHECK(printable("\u2027\u2028\u2029") == "\u2027\\u2028\\u2029");
  CHECK(printable("\u202a\u202e\u202f") == "\\u202a\\u202e\u202f");
  CHECK(printable("\u205f\u2060\u2066\u2069\u206f\u2070") ==
        "\u205f\\u2060\\u2066\\u2069\\u206f\u2070");
  CHECK(printable("\u200a\u200b\u200d\u200f\u2010") == "\u200a\\u200b\\u200d\\u200f\u2010");
  CHECK(printable("\u00ac\u00ad\u061c\u180e\ufeff") == "\u00ac\\u00ad\\u061c\\u180e\\ufeff");
  CHECK(printable("a\xff"
                  "b\xc3") ==
        "a\\xff"
        "b\\xc3");
  CHECK(printable("\xc0\x8a") == "\\xc0\\x8a");           // a line end in too many bytes
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a pair
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE(
    "a name in double quotes has a backslash before its own, and at most 128 bytes are shown") {
  CHECK(base::shown_in_quotes("") == "\"\"");
  CHECK(base::shown_in_quotes("a\"b\\") == "\"a\\\"b\\\\\"");
  CHECK(base::shown_in_quotes("\x1b\u200b") == "\"\\x1b\\u200b\"");
  const std::string most(128, 'a');
  CHECK(base::shown_in_quotes(most) == '"' + most + '"');
  CHECK(base::shown_in_quotes(most + '"') == '"' + most + "...\"");
  CHECK(base::shown_in_quotes('"' + most) == "\"\\\"" + most.substr(1) + "...\"");
}

TEST_CASE("what was made printable stays as it is") {
  const std::string once = printable("a\n\u202e\xff\\");
  CHECK(printable(once) == once);
}

TEST_CASE("quoted bytes are printable and at most 64 of them are shown") {
  CHECK(base::quoted_text("it's") == "'it\\x27s'");
  CHECK(base::quoted_text("\xff\\") == "'\\xff\\x5c'");
  CHECK(base::quoted_text("Zürich\n\u202e") == "'Zürich\\x0a\\u202e'");
  CHECK(base::quoted_text(std::string(63, 'a') + "ü") == "'" + std::string(63, 'a') + "'...");
  CHECK(base::quoted_text(std::string(64, 'a')) == "'" + std::string(64, 'a') + "'");
  CHECK(base::quoted_text(std::string(65, 'a')) == "'" + std::string(64, 'a') + "'...");
}

TEST_CASE("ranges of ranks are listed; past sixteen ranges the other ranks are counted") {
  CHECK(base::text_of(std::vector<RankRange>{}) == "");
  CHECK(base::text_of({RankRange{3, 5}, RankRange{9, 9}}) == "3-5, 9");
  std::vector<RankRange> many;
  for (int rank = 0; rank < 17; ++rank) many.push_back({rank * 3, rank * 3});
  many.push_back({100, 102});
  const std::string text = base::text_of(many);
  CHECK(text.substr(text.size() - 13) == "45 and 4 more");
}

TEST_CASE("a key looks secret wherever it stands, and paths and names do not") {
  const std::string key = "ZXhhbXBsZSAxLCBldmVyeWJvZHkga25vd3MgdGhpcy4=";
  for (const std::string& text :
       {key, key.substr(0, 43), key.substr(0, 42), key + "\n", key + "\r\n",
        "job " + key + " * all", "job=" + key, key + ":29400", "unix:" + key,
        std::string("muster-http-abc"), std::string("-----BEGIN PRIVATE KEY-----")}) {
    CHECK(base::looks_secret(text));
    CHECK(base::shown_unless_secret(text).find(key.substr(0, 20)) == text.npos);
    CHECK(base::refuse_secret("option", text)->code == ErrorCode::invalid_argument);
  }
  for (const std::string& text :
       {std::string(), std::string("trainer-0"), std::string("/etc/muster/credentials"),
        std::string("/srv/projects/many/training/runs/current/secrets/credentials"),
        std::string("/mnt/Data/Training-Runs/Run_7/Secrets/muster.credentials"),
        std::string("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
        std::string("node17.cluster.example.org:29400"),
        std::string("3f2c9a14-7b5e-4c7e-9d0b-1a2b3c4d5e6f.3f2c9a14-7b5e-4c7e-9d0b")}) {
    CHECK_FALSE(base::looks_secret(text));
    CHECK(base::shown_unless_secret(text) == text);
    CHECK_FALSE(base::refuse_secret("option", text).has_value());
  }
}

TEST_CASE("a path looks like a key by the part of it that does not exist") {
  const std::string key = "ZXhhbXBsZSAxLCBldmVyeWJvZHkga25vd3MgdGhpcy4=";
  const muster::test::TemporaryFolder folder;
  const std::string path = folder.path() + "/" + key;
  for (const std::string& missing : {key, "/" + key, path, path + "/below", "./" + key})
    CHECK(base::refuse_secret_path("option", missing).has_value());
  REQUIRE(std::filesystem::create_directory(path));
  CHECK_FALSE(base::refuse_secret_path("option", path).has_value());
  CHECK_FALSE(base::refuse_secret_path("option", path + "/below").has_value());
  CHECK(base::refuse_secret_path("option", path + "/" + key).has_value());
  const auto read = base::read_secret_file(path, 100);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().detail.find(key.substr(0, 20)) == key.npos);
}

}  // namespace
