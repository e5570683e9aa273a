#include "client/protocol/group_state.h"

#include <doctest/doctest.h>

namespace muster::client::protocol {
namespace {

Error error_of(ErrorCode code, std::uint64_t round = 0) {
  Error error;
  error.code = code;
  error.round = round;
  return error;
}

GroupState made() {
  wire::FormedReply formed;
  formed.epoch = 7;
  formed.world_size = 3;
  return GroupState(formed);
}

/// The number of the next round, given back.
std::uint64_t next_round(GroupState& state) {
  const auto round = state.begin_round();
  state.end_round(nullptr, Fate::answered);
  return *round;
}

void end_round(GroupState& state, ErrorCode code, std::uint64_t round, Fate fate) {
  const Error error = error_of(code, round);
  CHECK(state.begin_round());
  state.end_round(&error, fate);
}

TEST_CASE("the next collective comes behind the round that an interruption has failed") {
  GroupState state = made();
  CHECK(next_round(state) == 1);
  CHECK(*state.begin_interruption() == 1);
  CHECK(state.begin_interruption().error().code == ErrorCode::busy);
  CHECK(state.begin_round().error().code == ErrorCode::busy);
  state.end_interruption(4, nullptr, Fate::answered);
  CHECK(next_round(state) == 5);

  // Its own call has begun before: it keeps its number until it has ended, whatever ends first.
  CHECK(*state.begin_round() == 6);
  CHECK(*state.begin_interruption() == 2);
  state.end_interruption(6, nullptr, Fate::answered);
  const Error interrupted = error_of(ErrorCode::interrupted, 6);
  state.end_round(&interrupted, Fate::answered);
  CHECK(next_round(state) == 7);
  CHECK(*state.begin_round() == 8);
  CHECK(*state.begin_interruption() == 3);
  const Error later = error_of(ErrorCode::interrupted, 8);
  state.end_round(&later, Fate::answered);
  state.end_interruption(8, nullptr, Fate::answered);
  CHECK(next_round(state) == 9);
}

TEST_CASE("what became of an interruption in doubt is asked with its own number") {
  GroupState state = made();
  CHECK(*state.begin_interruption() == 1);
  const Error unknown = error_of(ErrorCode::outcome_unknown);
  state.end_interruption(0, &unknown, Fate::in_doubt);
  CHECK(state.begin_round().error().code == ErrorCode::outcome_unknown);
  CHECK(*state.begin_interruption() == 1);
  state.end_interruption(0, &unknown, Fate::unsent);  // which tells nothing of the first
  CHECK(state.begin_round().error().code == ErrorCode::outcome_unknown);
  CHECK(*state.begin_interruption() == 1);
  state.end_interruption(2, nullptr, Fate::answered);
  CHECK(next_round(state) == 3);
  CHECK(*state.begin_interruption() == 2);
}

TEST_CASE("a failure that was decided for all counts, one that was refused does not") {
  GroupState state = made();
  end_round(state, ErrorCode::timed_out, 1, Fate::answered);
  CHECK(state.rounds() == 1);
  end_round(state, ErrorCode::too_large, 2, Fate::answered);  // the sum of all
  CHECK(state.rounds() == 2);
  end_round(state, ErrorCode::too_large, 0, Fate::answered);  // this value
  end_round(state, ErrorCode::invalid_argument, 0, Fate::answered);
  end_round(state, ErrorCode::resource_exhausted, 0, Fate::answered);
  CHECK(state.rounds() == 2);
  CHECK(next_round(state) == 3);
}

TEST_CASE("whether a call without an answer is in doubt depends on whether it left") {
  for (const auto code : {ErrorCode::unavailable, ErrorCode::suspended, ErrorCode::cancelled,
                          ErrorCode::closed, ErrorCode::outcome_unknown}) {
    GroupState state = made();
    end_round(state, code, 0, Fate::in_doubt);
    CHECK(state.in_doubt());
    CHECK(state.begin_round().error().code == ErrorCode::outcome_unknown);
    CHECK(state.begin_round().error().round == 1);
  }
  for (const auto code : {ErrorCode::unavailable, ErrorCode::suspended, ErrorCode::cancelled}) {
    GroupState state = made();
    end_round(state, code, 0, Fate::unsent);
    CHECK_FALSE(state.in_doubt());
    CHECK(next_round(state) == 1);
  }
}

TEST_CASE("an answer about another round resolves nothing") {
  GroupState state = made();
  end_round(state, ErrorCode::suspended, 0, Fate::in_doubt);
  wire::Recover asked = state.doubts();
  CHECK(asked.epoch == 7);
  CHECK(asked.round == 1);
  wire::RecoverReply answer;
  answer.state = wire::RoundState::done;
  asked.round = 5;
  state.resolve(asked, answer);
  CHECK(state.in_doubt());
  answer.state = wire::RoundState::none;
  asked.round = 1;
  state.resolve(asked, answer);
  CHECK(state.in_doubt());
  answer.state = wire::RoundState::failed;
  state.resolve(asked, answer);
  CHECK_FALSE(state.in_doubt());
  CHECK(next_round(state) == 2);
}

TEST_CASE("an answer that says less than was asked leaves the rest in doubt") {
  GroupState state = made();
  const Error error = error_of(ErrorCode::suspended);
  for (const std::uint32_t rank : {1u, 2u}) {
    CHECK(*state.begin_send(rank, 5) == 0);
    state.end_send(rank, 5, &error, Fate::in_doubt);
  }
  const wire::Recover asked = state.doubts();
  CHECK(asked.round == 0);
  REQUIRE(asked.streams.size() == 2);
  wire::RecoverReply answer;
  answer.next_sequences = {1};
  state.resolve(asked, answer);
  CHECK(state.in_doubt());
  CHECK(*state.begin_send(1, 5) == 1);
  CHECK(state.begin_send(2, 5).error().code == ErrorCode::outcome_unknown);
  CHECK(state.objects_sent() == 1);
  answer.next_sequences = {1, 0};
  state.resolve(asked, answer);
}

TEST_CASE("of objects on their way a failed one takes those behind it back") {
  GroupState state = made();
  CHECK(*state.begin_send(1, 0) == 0);
  CHECK(*state.begin_send(1, 0) == 1);
  CHECK(*state.begin_send(1, 0) == 2);
  state.end_send(1, 0, nullptr, Fate::answered);
  const Error refused = error_of(ErrorCode::resource_exhausted);
  state.end_send(1, 0, &refused, Fate::answered);
  CHECK(state.begin_send(1, 0).error().code == ErrorCode::busy);
  CHECK(*state.begin_send(1, 9) == 0);  // another stream
  Error gap = error_of(ErrorCode::sequence_gap);
  gap.expected = 1;
  state.end_send(1, 0, &gap, Fate::answered);
  CHECK(*state.begin_send(1, 0) == 1);
}

TEST_CASE("a receive moves on with its object or with the word that it is gone") {
  GroupState state = made();
  const auto end_with = [&state](ErrorCode code) {
    const Error error = error_of(code);
    state.end_receive(2, 0, &error);
  };
  CHECK(*state.begin_receive(2, 0) == 0);
  CHECK(state.begin_receive(2, 0).error().code == ErrorCode::busy);
  CHECK(*state.begin_receive(2, 1) == 0);
  end_with(ErrorCode::timed_out);
  CHECK(*state.begin_receive(2, 0) == 0);
  end_with(ErrorCode::codec_mismatch);
  CHECK(*state.begin_receive(2, 0) == 0);
  end_with(ErrorCode::expired);
  CHECK(*state.begin_receive(2, 0) == 1);
  state.end_receive(2, 0, nullptr);
  CHECK(*state.begin_receive(2, 0) == 2);
  CHECK(state.objects_received() == 1);
}

TEST_CASE("why the epoch is over is said to every later call, the first reason stays") {
  GroupState state = made();
  state.end(error_of(ErrorCode::session_expired));
  state.end(error_of(ErrorCode::closed));
  CHECK(state.begin_round().error().code == ErrorCode::session_expired);
  CHECK(state.begin_send(1, 0).error().code == ErrorCode::session_expired);
  CHECK(state.begin_receive(1, 0).error().code == ErrorCode::session_expired);
  CHECK(state.begin_regroup().error().code == ErrorCode::session_expired);
  CHECK(state.ended()->code == ErrorCode::session_expired);
}

TEST_CASE("no round is called while a regroup is in doubt") {
  GroupState state = made();
  CHECK(state.begin_regroup());
  const Error unknown = error_of(ErrorCode::suspended);
  state.end_regroup(&unknown, Fate::in_doubt);
  CHECK(state.begin_round().error().code == ErrorCode::outcome_unknown);
  CHECK(state.begin_regroup());
  state.end_regroup(&unknown, Fate::unsent);
  CHECK(state.begin_round().error().code == ErrorCode::outcome_unknown);
  CHECK(state.begin_regroup());
  const Error late = error_of(ErrorCode::timed_out);
  state.end_regroup(&late, Fate::answered);
  CHECK(state.begin_round());
}

TEST_CASE("an epoch that a lost rank has ended can be regrouped, once") {
  GroupState state = made();
  state.end(error_of(ErrorCode::rank_lost));
  CHECK(state.begin_round().error().code == ErrorCode::rank_lost);
  CHECK(*state.begin_regroup() == 1);
  CHECK(state.begin_regroup().error().code == ErrorCode::busy);
  const Error late = error_of(ErrorCode::timed_out);
  state.end_regroup(&late, Fate::answered);
  CHECK(*state.begin_regroup() == 2);
  const Error refused = error_of(ErrorCode::invalid_argument);
  state.end_regroup(&refused, Fate::answered);
  CHECK(*state.begin_regroup() == 2);
  const Error unknown = error_of(ErrorCode::outcome_unknown);
  state.end_regroup(&unknown, Fate::in_doubt);
  CHECK(*state.begin_regroup() == 2);
  state.end_regroup(nullptr, Fate::answered);
  CHECK(state.begin_regroup().error().code == ErrorCode::stale_epoch);
  CHECK(state.begin_round().error().code == ErrorCode::stale_epoch);
}

TEST_CASE("rounds and regroups of one handle wait for each other") {
  GroupState state = made();
  CHECK(state.pending_round() == 0);
  CHECK(state.begin_round());
  CHECK(state.pending_round() == 1);
  CHECK(state.begin_round().error().code == ErrorCode::busy);
  CHECK(state.begin_regroup().error().code == ErrorCode::busy);
  state.end_round(nullptr, Fate::answered);
  CHECK(state.begin_regroup());
  CHECK(state.begin_round().error().code == ErrorCode::busy);
}

}  // namespace
}  // namespace muster::client::protocol
