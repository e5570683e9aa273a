#include "wire/reply.h"

#include <doctest/doctest.h>

#include "wire/codec.h"

using namespace muster;
using namespace muster::wire;
using namespace std::chrono_literals;
using namespace std::string_view_literals;

namespace {

template <class Reply>
std::string body_of(const Reply& reply) {
  std::string bytes;
  append_body(bytes, reply);
  return bytes;
}

}  // namespace

TEST_CASE("the fields of store replies come back as they were") {
  const std::string applied = body_of(AppliedReply{false, "other"});
  CHECK_FALSE(decode_body<AppliedReply>(applied)->applied);
  CHECK(decode_body<AppliedReply>(applied)->value == std::string_view("other"));
  const std::string value = body_of(ValueReply{"a\0b"sv});
  CHECK(decode_body<ValueReply>(value)->value == "a\0b"sv);
  CHECK(decode_body<NumberReply>(body_of(NumberReply{-9}))->number == -9);
  const std::vector<bool> present = {true, false, true};
  CHECK(decode_body<PresenceReply>(body_of(PresenceReply{present}))->present == present);
  const std::string values = body_of(ValuesReply{{"a", std::nullopt, ""}});
  const auto decoded = decode_body<ValuesReply>(values);
  REQUIRE(decoded->values.size() == 3);
  CHECK(decoded->values[0] == std::string_view("a"));
  CHECK_FALSE(decoded->values[1].has_value());
  CHECK(decoded->values[2] == std::string_view(""));
  CHECK(decode_body<EmptyReply>("").has_value());
}

TEST_CASE("the fields of lists and members come back as they were") {
  const std::string list =
      body_of(ListReply{{{"k", 5, 9s, true}, {"m", 1ULL << 40, {}, false}}, 3});
  const auto page = decode_body<ListReply>(list);
  REQUIRE(page->entries.size() == 2);
  CHECK(page->entries[0].name == "k");
  CHECK(page->entries[0].ttl == std::optional<Duration>(9s));
  CHECK(page->entries[0].bound);
  CHECK(page->entries[1].value_bytes == 1ULL << 40);
  CHECK_FALSE(page->entries[1].ttl.has_value());
  CHECK(page->cursor == 3);

  MemberEntry entry{5, MemberState::candidate, {}, 2s, "info"};
  entry.process.host = "b7";
  entry.process.pid = 12;
  entry.process.label = std::string(100, 'x');
  entry.process.id.bytes[9] = 1;
  const std::string members = body_of(MembersReply{{entry}});
  const auto decoded = decode_body<MembersReply>(members);
  REQUIRE(decoded->members.size() == 1);
  const MemberEntry& member = decoded->members[0];
  CHECK(member.rank == 5);
  CHECK(member.state == MemberState::candidate);
  CHECK(member.process.id == entry.process.id);
  CHECK(member.process.host == "b7");
  CHECK(member.process.pid == 12);
  CHECK(member.process.label == std::string(name_bytes_max, 'x'));
  CHECK(member.silence == 2s);
  CHECK(member.info == "info");
}

TEST_CASE("the fields of group replies come back as they were") {
  const auto formed = decode_body<FormedReply>(body_of(FormedReply{7, 2, 4, 1, 3, 1h}));
  CHECK(formed->epoch == 7);
  CHECK(formed->rank == 2);
  CHECK(formed->world_size == 4);
  CHECK(formed->hosting_rank == 1);
  CHECK(formed->candidates == 3);
  CHECK(formed->data_expiration == 1h);
  const std::string round = body_of(RoundReply{{{3, 3}, {9, 12}}, {"a", ""}});
  CHECK(decode_body<RoundReply>(round)->unconfirmed == std::vector<RankRange>{{3, 3}, {9, 12}});
  CHECK(decode_body<RoundReply>(round)->values == std::vector<std::string_view>{"a", ""});
  const std::string receive = body_of(ReceiveReply{3, 2, "object"});
  CHECK(decode_body<ReceiveReply>(receive)->sequence == 3);
  CHECK(decode_body<ReceiveReply>(receive)->codec == 2);
  CHECK(decode_body<ReceiveReply>(receive)->value == "object");
}

TEST_CASE("a recover reply carries the round or the error that its state promises") {
  RecoverReply reply;
  reply.next_sequences = {4, 0};
  reply.round.values = {"value"};
  reply.error.emplace();
  reply.error->code = ErrorCode::rank_lost;
  reply.error->rank_ranges = {{1, 2}};

  reply.state = RoundState::done;
  const std::string done = body_of(reply);
  CHECK(decode_body<RecoverReply>(done)->round.values == std::vector<std::string_view>{"value"});
  CHECK_FALSE(decode_body<RecoverReply>(done)->error.has_value());
  reply.state = RoundState::failed;
  const auto failed = decode_body<RecoverReply>(body_of(reply));
  CHECK(failed->error->code == ErrorCode::rank_lost);
  CHECK(failed->error->rank_ranges == std::vector<RankRange>{{1, 2}});
  CHECK(failed->round.values.empty());
  reply.state = RoundState::none;
  const auto none = decode_body<RecoverReply>(body_of(reply));
  CHECK(none->next_sequences == std::vector<std::uint64_t>{4, 0});
  CHECK_FALSE(none->error.has_value());
}

TEST_CASE("unknown optional fields behind a reply are skipped") {
  const std::string bytes = body_of(ValueReply{"v"}) + std::string("\x63\x01\x00\x00\x00x"sv);
  CHECK(decode_body<ValueReply>(bytes)->value == "v");
  CHECK(decode_body<EmptyReply>("\x63\x01\x00\x00\x00x"sv).has_value());
  CHECK(decode_body<EmptyReply>("\x63\x02\x00\x00\x00x"sv).error().code ==
        ErrorCode::protocol_error);
}

TEST_CASE("a range of ranks that runs backwards, below zero or to the end of numbers is refused") {
  const auto refused = [](RankRange range) {
    return !decode_body<RoundReply>(body_of(RoundReply{{range}, {}})).has_value();
  };
  CHECK_FALSE(refused({0, 0}));
  CHECK(refused({5, 4}));
  CHECK(refused({-1, 4}));
  CHECK(refused({0, 0x7fffffff}));
}

TEST_CASE("no item of a list is shorter than its count is checked against") {
  const auto least = [](const auto& reply) { return body_of(reply).size() - 4; };
  CHECK(least(MembersReply{{MemberEntry{}}}) == item_bytes_min<MemberEntry>);
  CHECK(least(ListReply{{ListEntry{}}, 0}) - 8 == item_bytes_min<ListEntry>);
  CHECK(least(PresenceReply{{false}}) == item_bytes_min<bool>);
  CHECK(least(ValuesReply{{std::nullopt}}) == item_bytes_min<std::optional<std::string_view>>);
  CHECK(least(RoundReply{{}, {""}}) - 4 == item_bytes_min<std::string_view>);
  CHECK(least(RoundReply{{{0, 0}}, {}}) - 4 == item_bytes_min<RankRange>);
  CHECK(least(StatusReply{{{"", ""}}}) ==
        item_bytes_min<std::pair<std::string_view, std::string_view>>);
}
