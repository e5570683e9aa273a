#include <doctest/doctest.h>

#include "muster/error.h"

// This test and error_advice_test.cpp pin texts; all others compare codes and fields.

using namespace muster;
using namespace std::chrono_literals;

namespace {

RankReport report_of(int rank, std::string host, std::uint32_t pid, std::string label) {
  RankReport report;
  report.rank = rank;
  report.joined = true;
  report.process.host = std::move(host);
  report.process.pid = pid;
  report.process.label = std::move(label);
  return report;
}

Error missing_ranks() {
  Error error;
  error.code = ErrorCode::timed_out;
  error.operation = "barrier";
  error.group = "tp0";
  error.epoch = 7;
  error.round = 12;
  error.elapsed = 5s;
  error.ranks = {report_of(3, "b7", 4711, "pod-3")};
  error.ranks[0].silence = 6200ms;
  error.rank_ranges = {{3, 3}, {9, 12}};
  error.decided_by_rank = 0;
  error.decided_by_timeout = 5s;
  error.where = "10.0.0.1:4600";
  error.happened = Happened::no;
  return error;
}

}  // namespace

TEST_CASE("a time-out names group, round, the ranks that are missing and who decided") {
  Error error = missing_ranks();
  CHECK(error.message() ==
        "timed_out: barrier of group \"tp0\" (epoch 7, round 12) after 5.0 s: "
        "missing rank 3 (host b7, pid 4711, label pod-3, silent for 6.2 s) and ranks 9-12; "
        "decided by rank 0 (timeout 5.0 s); at 10.0.0.1:4600; it did not happen; "
        "see what keeps them, or give more time");
  error.detail = "they may be starting still";
  CHECK(error.message() ==
        "timed_out: barrier of group \"tp0\" (epoch 7, round 12) after 5.0 s: "
        "missing rank 3 (host b7, pid 4711, label pod-3, silent for 6.2 s) and ranks 9-12; "
        "decided by rank 0 (timeout 5.0 s); at 10.0.0.1:4600; they may be starting still; "
        "it did not happen; see what keeps them, or give more time");
}

TEST_CASE("ranks that never joined are told apart from those that are silent") {
  Error error = missing_ranks();
  for (int rank = 9; rank <= 11; ++rank) {
    RankReport absent;
    absent.rank = rank;
    error.ranks.push_back(absent);
  }
  CHECK(error.message() ==
        "timed_out: barrier of group \"tp0\" (epoch 7, round 12) after 5.0 s: "
        "missing rank 3 (host b7, pid 4711, label pod-3, silent for 6.2 s) and "
        "ranks 9-11 (never joined) and rank 12; "
        "decided by rank 0 (timeout 5.0 s); at 10.0.0.1:4600; it did not happen; "
        "see what keeps them, or give more time");
}

TEST_CASE("a process that hosts the server and has no rank is told without one") {
  Error error;
  error.code = ErrorCode::unavailable;
  error.operation = "get";
  error.ranks = {report_of(-1, "b7", 4711, "")};
  error.cause = LossCause::closed;
  error.detail = "Connection refused";
  CHECK(error.message() ==
        "unavailable: get: the server's process (host b7, pid 4711); cause closed; "
        "Connection refused; check that the server runs at this address");
}

TEST_CASE("a loss says how it was noticed and how to go on") {
  Error error;
  error.code = ErrorCode::rank_lost;
  error.operation = "all_gather_obj";
  error.group = "pp1";
  error.epoch = 9;
  error.round = 2;
  error.elapsed = 340ms;
  error.ranks = {report_of(1, "b2", 88, "")};
  error.rank_ranges = {{1, 1}};
  error.cause = LossCause::closed;
  error.decided_by = "server";
  error.happened = Happened::no;
  CHECK(error.message() ==
        "rank_lost: all_gather_obj of group \"pp1\" (epoch 9, round 2) after 340 ms: "
        "lost rank 1 (host b2, pid 88); cause closed; decided by server; it did not happen; "
        "regroup() goes on with the survivors");
}

TEST_CASE("ranks that are lost of different causes are told each with its own") {
  Error error;
  error.code = ErrorCode::rank_lost;
  error.operation = "barrier";
  error.ranks = {report_of(1, "b2", 88, ""), report_of(5, "b3", 89, "")};
  error.ranks[0].cause = LossCause::heartbeat;
  error.ranks[1].cause = LossCause::closed;
  error.rank_ranges = {{1, 1}, {5, 5}};
  CHECK(error.message() ==
        "rank_lost: barrier: lost rank 1 (host b2, pid 88, cause heartbeat) and "
        "rank 5 (host b3, pid 89, cause closed); regroup() goes on with the survivors");
}

TEST_CASE("numbers tell what was asked and what is allowed") {
  Error too_large;
  too_large.code = ErrorCode::too_large;
  too_large.operation = "set";
  too_large.limit = 1024;
  too_large.actual = 1025;
  too_large.detail = "the key is too large; shorten it, or raise the server's key_bytes_max";
  too_large.happened = Happened::no;
  CHECK(too_large.message() ==
        "too_large: set: limit 1024, got 1025; "
        "the key is too large; shorten it, or raise the server's key_bytes_max; it did not happen");

  Error gap;
  gap.code = ErrorCode::sequence_gap;
  gap.operation = "recv_obj";
  gap.expected = 0;
  gap.actual = 3;
  gap.epoch = 7;
  gap.stream = StreamPosition{2, 0, 30, 3};
  CHECK(gap.message() ==
        "sequence_gap: recv_obj (epoch 7, from rank 2 to rank 0, tag 30, sequence 3): "
        "expected 0, got 3; use one handle per group and rank; leave and join anew");

  Error codecs;
  codecs.code = ErrorCode::codec_mismatch;
  codecs.expected = 2;
  codecs.actual = 1;
  CHECK(codecs.message() ==
        "codec_mismatch: expected codec 2, got codec 1; use the same codec on both sides");
  codecs.expected = 5'000'000'000;
  codecs.actual = 6'000'000'000;
  CHECK(codecs.message() ==
        "codec_mismatch: expected type 5000000000, got type 6000000000; "
        "use the same type on both sides, or one schema_id");
}

TEST_CASE("values that differ are told in their unit, by the detail") {
  Error error;
  error.code = ErrorCode::group_mismatch;
  error.operation = "create";
  error.group = "g";
  error.expected = 3'600'000'000;
  error.actual = 60'000'000;
  error.detail = "the group's data expiration is 3600 s, not 60 s";
  CHECK(error.message() ==
        "group_mismatch: create of group \"g\": the group's data expiration is 3600 s, not 60 s; "
        "give every rank the same values");
}

TEST_CASE("a name is cut where it is long") {
  Error error;
  error.code = ErrorCode::not_found;
  error.operation = "inspect_group";
  error.group = std::string(2000, 'g');
  error.where = std::string(2000, 'w');
  CHECK(error.message() == "not_found: inspect_group of group \"" + std::string(128, 'g') +
                               "...\": at " + std::string(128, 'w') + "...");
}

TEST_CASE("the error of a change says whether it happened, that of a read says nothing of it") {
  Error error;
  error.code = ErrorCode::cancelled;
  error.operation = "add";
  error.decided_by = "client";
  error.detail = "cancelled by its caller";
  CHECK(error.message() == "cancelled: add: decided by client; cancelled by its caller");
  error.happened = Happened::no;
  CHECK(error.message() ==
        "cancelled: add: decided by client; cancelled by its caller; it did not happen");
  error.happened = Happened::maybe;
  error.elapsed = 2ms;
  error.where = "10.0.0.1:4600";
  CHECK(error.message() ==
        "cancelled: add after 2 ms: decided by client; at 10.0.0.1:4600; cancelled by its caller; "
        "it may have happened, look before you repeat it");
}

TEST_CASE("an error without fields is its code and what to do about it") {
  Error error;
  error.code = ErrorCode::suspended;
  CHECK(error.message() == "suspended: the session goes on when the connection is back");
  error.code = ErrorCode::not_found;
  CHECK(error.message() == "not_found");
  error.code = static_cast<ErrorCode>(999);
  CHECK(error.message() == "error 999");
}

TEST_CASE("durations are rounded to what people read") {
  Error error;
  error.code = ErrorCode::not_found;
  const auto text = [&error](Duration elapsed) {
    error.elapsed = elapsed;
    return error.message();
  };
  CHECK(text(7us) == "not_found: after 7 us");
  CHECK(text(1499us) == "not_found: after 1 ms");
  CHECK(text(999'499us) == "not_found: after 999 ms");
  CHECK(text(999'500us) == "not_found: after 1.0 s");
  CHECK(text(4'990ms) == "not_found: after 5.0 s");
  CHECK(text(300s) == "not_found: after 300.0 s");
  CHECK(text(-1s) == "not_found");
}

TEST_CASE("a message is one line whatever names other processes gave") {
  Error error;
  error.code = ErrorCode::rank_in_use;
  error.group = "a\nb";
  error.ranks = {report_of(2, "host\t", 1, "\x7f\u009b\u202e")};
  CHECK(error.message() ==
        "rank_in_use: group \"a\\x0ab\": held by rank 2 (host host\\x09, pid 1, "
        "label \\x7f\\u009b\\u202e); "
        "end that process, or choose another rank");
}

TEST_CASE("a message about thousands of ranks stays short") {
  Error error;
  error.code = ErrorCode::timed_out;
  for (int rank = 0; rank < 64; ++rank) {
    error.ranks.push_back(report_of(rank * 2, "b7", 4711, "pod"));
  }
  for (int rank = 0; rank < 8192; ++rank) error.rank_ranges.push_back({rank * 2, rank * 2});
  const std::string text = error.message();
  CHECK(text.size() < 1000);
  CHECK(text.find("rank 14 (host b7, pid 4711, label pod) and ranks 16, 18,") != text.npos);
  CHECK(text.find("46 and 8168 more") != text.npos);

  error.ranks.clear();
  error.rank_ranges = {{0, 2147483646}};
  CHECK(error.message() ==
        "timed_out: missing ranks 0-2147483646; see what keeps them, or give more time");
}
