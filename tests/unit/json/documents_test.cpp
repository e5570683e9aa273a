#include "json/documents.h"

#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/bytes.h"
#include "json/fields.h"
#include "muster/error.h"
#include "muster/process_group_options.h"

namespace muster::json {
namespace {

Error every_field() {
  Error error;
  error.code = ErrorCode::timed_out;
  error.operation = "recv_obj";
  error.group = "trainer";
  error.epoch = 7;
  error.round = 3;
  error.stream = StreamPosition{1, 0, 99, 5};
  error.elapsed = std::chrono::milliseconds(1500);
  error.decided_by = "rank 2";
  error.decided_by_rank = 2;
  error.decided_by_timeout = std::chrono::seconds(2);
  error.where = "127.0.0.1:1";
  error.ranks = {{4, true, {{}, "b7", 12, "pod"}, Duration(250), "barrier", LossCause::closed}};
  error.rank_ranges = {{4, 5}};
  error.cause = LossCause::heartbeat;
  error.expected = 8;
  error.actual = 9;
  error.limit = 10;
  error.happened = Happened::maybe;
  error.detail = "look first";
  return error;
}

TEST_CASE("the document of an error has every field that says something") {
  const Json json = json_of(every_field());
  const Json expected = {
      {"code", "timed_out"},
      {"number", 21},
      {"operation", "recv_obj"},
      {"group", "trainer"},
      {"epoch", 7},
      {"round", 3},
      {"stream", {{"source", 1}, {"destination", 0}, {"tag", 99}, {"sequence", 5}}},
      {"elapsed_s", 1.5},
      {"decided_by", "rank 2"},
      {"decided_by_rank", 2},
      {"decided_by_timeout_s", 2.0},
      {"where", "127.0.0.1:1"},
      {"cause", "heartbeat"},
      {"happened", "maybe"},
      {"expected", 8},
      {"actual", 9},
      {"limit", 10},
      {"ranks", Json::array({{{"rank", 4},
                              {"host", "b7"},
                              {"pid", 12},
                              {"label", "pod"},
                              {"process", std::string(32, '0')},
                              {"silence_s", 0.00025},
                              {"called", "barrier"},
                              {"cause", "closed"}}})},
      {"ranks_at_fault", {4, 5}},
      {"detail", "look first"},
      {"message", every_field().message()}};
  CHECK(json == expected);
}

TEST_CASE("rank 0, which is a number as any, has decided where it has") {
  Error error = every_field();
  error.decided_by_rank = 0;
  CHECK(json_of(error)["decided_by_rank"] == 0);
  CHECK(json_of(error)["decided_by_timeout_s"] == 2.0);
}

TEST_CASE("of an error that says little the document has the code and what is always there") {
  Error error;
  error.code = ErrorCode::closed;
  const Json json = json_of(error);
  std::vector<std::string> names;
  for (const auto& [name, value] : json.items()) names.push_back(name);
  CHECK(names ==
        std::vector<std::string>{"code", "number", "round", "ranks", "ranks_at_fault", "message"});
}

TEST_CASE("ranges that no group has do not decide how long a document gets") {
  const int last = std::numeric_limits<int>::max();
  CHECK(json_of(std::vector<RankRange>{{last - 1, last}}) == Json({last - 1, last}));
  CHECK(json_of(std::vector<RankRange>{{0, last}, {0, last}}).size() == 1U << 17U);
  CHECK(json_of(std::vector<RankRange>{{3, 2}}).empty());
}

TEST_CASE("bytes that are no text are there exactly, too, in base64") {
  Json json;
  add_bytes(json, "key", "a\xff\x01");
  add_bytes(json, "text", "\xc3\xa4");
  CHECK(json["key_base64"] == "Yf8B");
  CHECK_FALSE(json.contains("text_base64"));
  CHECK(Json::parse(text_of(json, -1))["key"] == "a\xef\xbf\xbd\x01");
  CHECK(text_of(json, -1).find('\x01') == std::string::npos);
}

TEST_CASE("only what UTF-8 allows is text") {
  for (const char* const text : {"a", "\xc2\x80", "\xe2\x82\xac", "\xf0\x9f\x99\x82"}) {
    CAPTURE(text);
    CHECK(is_utf8(text));
  }
  // In more bytes than needed, one of a pair, beyond the last one, cut short, no beginning.
  for (const char* const bytes : {"\xc0\x80", "\xe0\x82\xac", "\xf0\x82\x82\xac", "\xed\xa0\x80",
                                  "\xf4\x90\x80\x80", "\xe2\x82", "\x82", "\xff"}) {
    CAPTURE(bytes);
    CHECK_FALSE(is_utf8(bytes));
  }
}

TEST_CASE("from base64 comes what went into it, and from nothing else anything") {
  std::string bytes;
  for (int length = 0; length < 300; ++length) {
    if (from_base64(base64(bytes)) != bytes) FAIL_CHECK("other bytes of length " << length);
    bytes += static_cast<char>(length * 37);
  }
  for (const char* const text : {"=", "A", "AA", "AAA", "AA=A", "AB==", "AAB=", "AAAA=", "A-==",
                                 "====", "AAAA AAAA", "AA==AAAA"}) {
    CAPTURE(text);
    CHECK_FALSE(from_base64(text).has_value());
  }
}

TEST_CASE("of one, two and three bytes base64 has four letters") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foob") == "Zm9vYg==");
}

TEST_CASE("a member tells of its info and of its rank before where there are any") {
  MemberInfo member;
  member.state = MemberState::away;
  CHECK_FALSE(json_of(member).contains("info"));
  CHECK_FALSE(json_of(member).contains("previous_rank"));
  member.info = "unix:/x";
  member.previous_rank = 0;
  const Json json = json_of(member);
  CHECK(json["state"] == "away");
  CHECK(json["info"] == "unix:/x");
  CHECK(json["previous_rank"] == 0);
}

TEST_CASE("what the server counts is a number where every reader of JSON has it exactly") {
  const Json json = json_of_status({{"keys", "12"},
                                    {"version", "1"},
                                    {"sum", "999999999999999"},
                                    {"large", "1000000000000000"},
                                    {"empty", ""}});
  CHECK(json.dump() ==
        R"({"keys":12,"version":"1","sum":999999999999999,"large":"1000000000000000","empty":""})");
}

}  // namespace
}  // namespace muster::json
