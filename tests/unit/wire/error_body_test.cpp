#include "wire/error_body.h"

#include <doctest/doctest.h>

#include "golden/builders.h"

using namespace muster;
using namespace muster::wire;
using namespace std::string_view_literals;

namespace {

constexpr auto timed_out = static_cast<std::uint16_t>(ErrorCode::timed_out);

std::string bytes_of(const Error& error) {
  std::string bytes;
  append_error(bytes, error);
  return bytes;
}

}  // namespace

TEST_CASE("every field of an error comes back as it was") {
  const Error error = golden::sample_error();
  const auto told = decode_error(timed_out, bytes_of(error));
  REQUIRE(told.has_value());
  CHECK(told->code == ErrorCode::timed_out);
  CHECK(told->operation == error.operation);
  CHECK(told->group == error.group);
  CHECK(told->epoch == error.epoch);
  CHECK(told->round == error.round);
  CHECK(told->elapsed == error.elapsed);
  CHECK(told->decided_by == error.decided_by);
  CHECK(told->decided_by_rank == error.decided_by_rank);
  CHECK(told->decided_by_timeout == error.decided_by_timeout);
  CHECK(told->where == error.where);
  CHECK(told->rank_ranges == error.rank_ranges);
  CHECK(told->cause == error.cause);
  CHECK(told->expected == error.expected);
  CHECK(told->actual == error.actual);
  CHECK(told->limit == error.limit);
  CHECK(told->detail == error.detail);
  REQUIRE(told->ranks.size() == 2);
  CHECK(told->ranks[0].rank == 3);
  CHECK(told->ranks[0].joined);
  CHECK(told->ranks[0].process.id == error.ranks[0].process.id);
  CHECK(told->ranks[0].process.host == "b7");
  CHECK(told->ranks[0].process.pid == 4711);
  CHECK(told->ranks[0].process.label == "pod-3");
  CHECK(told->ranks[0].silence == error.ranks[0].silence);
  CHECK(told->ranks[0].called == "broadcast");
  CHECK_FALSE(told->ranks[1].joined);
  CHECK_FALSE(told->ranks[1].silence.has_value());
  CHECK(told->message() == error.message());
}

TEST_CASE("each rank that is lost comes back with its own cause") {
  Error error;
  error.code = ErrorCode::rank_lost;
  error.ranks.resize(3);
  for (int rank = 0; rank < 3; ++rank) error.ranks[static_cast<std::size_t>(rank)].rank = rank;
  error.ranks[0].cause = LossCause::closed;
  error.ranks[2].cause = static_cast<LossCause>(0x63);  // of a newer server
  const auto told = decode_error(static_cast<std::uint16_t>(error.code), bytes_of(error));
  REQUIRE(told.has_value());
  REQUIRE(told->ranks.size() == 3);
  CHECK(told->ranks[0].cause == LossCause::closed);
  CHECK(told->ranks[1].cause == LossCause::none);
  CHECK(static_cast<int>(told->ranks[2].cause) == 0x63);
}

TEST_CASE("an error without fields has no bytes, and no rank has decided it") {
  CHECK(bytes_of(Error{}).empty());
  const auto told = decode_error(20, "");
  REQUIRE(told.has_value());
  CHECK(told->code == ErrorCode::not_found);
  CHECK(told->decided_by_rank == -1);
}

TEST_CASE("unknown fields of an error are skipped, an unknown code or cause stays a number") {
  const auto told = decode_error(999,
                                 "\xf0\x02\x00\x00\x00xy\x0c\x01\x00\x00\x00\x63"
                                 "\x03\x08\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00"sv);
  REQUIRE(told.has_value());
  CHECK(static_cast<int>(told->code) == 999);
  CHECK(static_cast<int>(told->cause) == 0x63);
  CHECK(told->epoch == 7);
}

TEST_CASE("a known field of another length is no error") {
  CHECK_FALSE(decode_error(timed_out, "\x03\x07\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00"sv));
  CHECK_FALSE(decode_error(timed_out, "\x0c\x02\x00\x00\x00\x01\x01"sv));
  CHECK_FALSE(decode_error(timed_out, "\x0c\x00\x00\x00\x00"sv));
}

TEST_CASE("the first 64 ranks are told in full, whoever writes or reads") {
  Error error;
  error.code = ErrorCode::timed_out;
  for (int rank = 0; rank < 100; ++rank) {
    error.ranks.emplace_back();
    error.ranks.back().rank = rank;
  }
  error.rank_ranges = {{0, 99}};
  const std::string bytes = bytes_of(error);
  const auto told = decode_error(timed_out, bytes);
  REQUIRE(told.has_value());
  CHECK(told->ranks.size() == ranks_in_full_max);
  CHECK(told->ranks.back().rank == 63);
  CHECK(told->rank_ranges == std::vector<RankRange>{{0, 99}});
  CHECK(decode_error(timed_out, bytes + bytes)->ranks.size() == ranks_in_full_max);
}

TEST_CASE("an event comes back as it was, of an unknown kind too") {
  Event event;
  event.kind = EventKind::rank_left;
  event.epoch = 7;
  event.error = golden::sample_error();
  std::string bytes;
  append_event(bytes, event);
  for (const std::uint16_t kind : {std::uint16_t{2}, std::uint16_t{77}}) {
    const auto told = decode_event(kind, bytes);
    REQUIRE(told.has_value());
    CHECK(static_cast<std::uint16_t>(told->kind) == kind);
    CHECK(told->epoch == 7);
    CHECK(told->error.message() == event.error.message());
    CHECK_FALSE(told->ends_session.has_value());
  }
}

TEST_CASE("what an event says of its session is skipped as a field of an error, and is a bool") {
  Event event;
  event.kind = EventKind::session_ended;
  for (const bool ends_session : {false, true}) {
    event.ends_session = ends_session;
    std::string bytes;
    append_event(bytes, event);
    CHECK(decode_event(3, bytes).value().ends_session == ends_session);
    CHECK(decode_error(0, std::string_view(bytes).substr(10)).has_value());
    bytes.back() = 2;
    CHECK_FALSE(decode_event(3, bytes).has_value());
    bytes.pop_back();
    CHECK_FALSE(decode_event(3, bytes).has_value());
  }
}
