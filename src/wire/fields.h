#pragma once

#include <concepts>
#include <cstdint>

#include "wire/reply.h"
#include "wire/request.h"

// The fields of every message, named once, in their order on the wire. A codec is called with the
// name and the member of each: the encoder of a const message, the decoder of one to be filled,
// and the tests' golden files, which need the names.

namespace muster::wire {

template <class Message, class Struct>
concept Is = std::same_as<std::remove_const_t<Message>, Struct>;

// Enums that travel as one byte: the numbers in use are consecutive.

constexpr std::uint8_t first_number(Collective) { return 1; }
constexpr std::uint8_t last_number(Collective) { return 5; }
constexpr std::uint8_t first_number(ListKind) { return 0; }
constexpr std::uint8_t last_number(ListKind) { return 1; }
constexpr std::uint8_t first_number(MemberState) { return 0; }
constexpr std::uint8_t last_number(MemberState) { return 5; }
constexpr std::uint8_t first_number(RoundState) { return 0; }
constexpr std::uint8_t last_number(RoundState) { return 3; }

// The least bytes an item of a list takes, against which its count is checked.

template <class Item>
inline constexpr std::size_t item_bytes_min = 1;  // bool, optional
template <>
inline constexpr std::size_t item_bytes_min<std::uint64_t> = 8;
template <>
inline constexpr std::size_t item_bytes_min<std::string_view> = 4;
template <>
inline constexpr std::size_t item_bytes_min<std::pair<std::string_view, std::string_view>> = 8;
template <>
inline constexpr std::size_t item_bytes_min<RankRange> = 8;
template <>
inline constexpr std::size_t item_bytes_min<KeyValue> = 8;
template <>
inline constexpr std::size_t item_bytes_min<StreamName> = 12;
template <>
inline constexpr std::size_t item_bytes_min<ListEntry> = 14;
template <>
inline constexpr std::size_t item_bytes_min<MemberEntry> = 45;
template <>
inline constexpr std::size_t item_bytes_min<CandidateEntry> = 67;
template <>
inline constexpr std::size_t item_bytes_min<SessionEntry> = 53;
template <>
inline constexpr std::size_t item_bytes_min<GroupEntry> = 40;
template <>
inline constexpr std::size_t item_bytes_min<ReceiverEntry> = 32;
template <>
inline constexpr std::size_t item_bytes_min<WaiterEntry> = 60;

// Requests.

void fields(auto& codec, Is<Set> auto& m) {
  codec("key", m.key);
  codec("value", m.value);
  codec("ttl", m.ttl);
  codec("only_if_absent", m.only_if_absent);
  codec("bind_to_session", m.bind_to_session);
}
void fields(auto& codec, Is<Get> auto& m) { codec("key", m.key); }
void fields(auto& codec, Is<Take> auto& m) { codec("key", m.key); }
void fields(auto& codec, Is<Add> auto& m) {
  codec("key", m.key);
  codec("delta", m.delta);
}
void fields(auto& codec, Is<CompareSet> auto& m) {
  codec("key", m.key);
  codec("expected", m.expected);
  codec("desired", m.desired);
  codec("ttl", m.ttl);
}
void fields(auto& codec, Is<Append> auto& m) {
  codec("key", m.key);
  codec("suffix", m.suffix);
}
void fields(auto& codec, Is<Remove> auto& m) { codec("keys", m.keys); }
void fields(auto& codec, Is<Exists> auto& m) { codec("keys", m.keys); }
void fields(auto& codec, Is<Wait> auto& m) { codec("keys", m.keys); }
void fields(auto& codec, Is<MultiGet> auto& m) { codec("keys", m.keys); }
void fields(auto& codec, Is<KeyValue> auto& m) {
  codec("key", m.key);
  codec("value", m.value);
}
void fields(auto& codec, Is<MultiSet> auto& m) {
  codec("entries", m.entries);
  codec("ttl", m.ttl);
}
void fields(auto& codec, Is<List> auto& m) {
  codec("kind", m.kind);
  codec("prefix", m.prefix);
  codec("cursor", m.cursor);
  codec("count_max", m.count_max);
}
void fields(auto& codec, Is<Touch> auto& m) {
  codec("key", m.key);
  codec("ttl", m.ttl);
}
void fields(auto& codec, Is<Join> auto& m) {
  codec("group", m.group);
  codec("rank", m.rank);
  codec("world_size", m.world_size);
  codec("data_expiration", m.data_expiration);
  codec("standby", m.standby);
  codec("info", m.info);
}
void fields(auto& codec, Is<Leave> auto& m) { codec("epoch", m.epoch); }
void fields(auto& codec, Is<Regroup> auto& m) {
  codec("epoch", m.epoch);
  codec("attempt", m.attempt);
  codec("next_round", m.next_round);
  codec("new_size", m.new_size);
  codec("min_size", m.min_size);
}
void fields(auto& codec, Is<Members> auto& m) { codec("epoch", m.epoch); }
void fields(auto& codec, Is<ReportDead> auto& m) {
  codec("process", m.process);
  codec("reason", m.reason);
}
void fields(auto& codec, Is<CancelRegroup> auto& m) {
  codec("epoch", m.epoch);
  codec("attempt", m.attempt);
}
void fields(auto& codec, Is<CollectiveCall> auto& m) {
  codec("epoch", m.epoch);
  codec("round", m.round);
  codec("collective", m.collective);
  codec("root", m.root);
  codec("codec", m.codec);
  codec("values", m.values);
}
void fields(auto& codec, Is<CancelRound> auto& m) {
  codec("epoch", m.epoch);
  codec("round", m.round);
}
void fields(auto& codec, Is<Send> auto& m) {
  codec("epoch", m.epoch);
  codec("destination", m.destination);
  codec("tag", m.tag);
  codec("sequence", m.sequence);
  codec("codec", m.codec);
  codec("value", m.value);
}
void fields(auto& codec, Is<Receive> auto& m) {
  codec("epoch", m.epoch);
  codec("source", m.source);
  codec("tag", m.tag);
  codec("sequence", m.sequence);
  codec("codec", m.codec);
}
void fields(auto& codec, Is<ExpireData> auto& m) {
  codec("epoch", m.epoch);
  codec("older_than", m.older_than);
}
void fields(auto& codec, Is<StreamName> auto& m) {
  codec("destination", m.destination);
  codec("tag", m.tag);
}
void fields(auto& codec, Is<Recover> auto& m) {
  codec("epoch", m.epoch);
  codec("round", m.round);
  codec("streams", m.streams);
}
void fields(auto&, Is<Status> auto&) {}
void fields(auto& codec, Is<Sessions> auto& m) { codec("after", m.after); }
void fields(auto& codec, Is<Groups> auto& m) { codec("after", m.after); }
void fields(auto& codec, Is<InspectGroup> auto& m) { codec("group", m.group); }
void fields(auto& codec, Is<Waiters> auto& m) { codec("after", m.after); }

// Replies.

void fields(auto&, Is<EmptyReply> auto&) {}
void fields(auto& codec, Is<AppliedReply> auto& m) {
  codec("applied", m.applied);
  codec("value", m.value);
}
void fields(auto& codec, Is<ValueReply> auto& m) { codec("value", m.value); }
void fields(auto& codec, Is<NumberReply> auto& m) { codec("number", m.number); }
void fields(auto& codec, Is<PresenceReply> auto& m) { codec("present", m.present); }
void fields(auto& codec, Is<ValuesReply> auto& m) { codec("values", m.values); }
void fields(auto& codec, Is<ListEntry> auto& m) {
  codec("name", m.name);
  codec("value_bytes", m.value_bytes);
  codec("ttl", m.ttl);
  codec("bound", m.bound);
}
void fields(auto& codec, Is<ListReply> auto& m) {
  codec("entries", m.entries);
  codec("cursor", m.cursor);
}
void fields(auto& codec, Is<FormedReply> auto& m) {
  codec("epoch", m.epoch);
  codec("rank", m.rank);
  codec("world_size", m.world_size);
  codec("hosting_rank", m.hosting_rank);
  codec("candidates", m.candidates);
  codec("data_expiration", m.data_expiration);
}
void fields(auto& codec, Is<MemberEntry> auto& m) {
  codec("rank", m.rank);
  codec("state", m.state);
  codec("process", m.process);
  codec("silence", m.silence);
  codec("info", m.info);
}
void fields(auto& codec, Is<MembersReply> auto& m) { codec("members", m.members); }
void fields(auto& codec, Is<RoundReply> auto& m) {
  codec("unconfirmed", m.unconfirmed);
  codec("values", m.values);
}
void fields(auto& codec, Is<ReceiveReply> auto& m) {
  codec("sequence", m.sequence);
  codec("codec", m.codec);
  codec("value", m.value);
}
void fields(auto& codec, Is<RecoverReply> auto& m) {
  codec("state", m.state);
  codec("next_sequences", m.next_sequences);
  if (m.state == RoundState::failed) codec("error", m.error);
  if (m.state == RoundState::done) codec("round", m.round);
}
void fields(auto& codec, Is<StatusReply> auto& m) { codec("fields", m.fields); }
void fields(auto& codec, Is<SessionEntry> auto& m) {
  codec("id", m.id);
  codec("process", m.process);
  codec("connected", m.connected);
  codec("silence", m.silence);
  codec("groups", m.groups);
  codec("waiting", m.waiting);
}
void fields(auto& codec, Is<SessionsReply> auto& m) { codec("sessions", m.sessions); }
void fields(auto& codec, Is<GroupEntry> auto& m) {
  codec("name", m.name);
  codec("epoch", m.epoch);
  codec("world_size", m.world_size);
  codec("live", m.live);
  codec("candidates", m.candidates);
  codec("round", m.round);
  codec("round_age", m.round_age);
}
void fields(auto& codec, Is<GroupsReply> auto& m) { codec("groups", m.groups); }
void fields(auto& codec, Is<RoundEntry> auto& m) {
  codec("number", m.number);
  codec("call", m.call);
  codec("age", m.age);
  codec("called", m.called);
  codec("missing", m.missing);
  codec("older_rounds", m.older_rounds);
}
void fields(auto& codec, Is<RegroupEntry> auto& m) {
  codec("new_size", m.new_size);
  codec("min_size", m.min_size);
  codec("age", m.age);
  codec("called", m.called);
  codec("missing", m.missing);
}
void fields(auto& codec, Is<ReceiverEntry> auto& m) {
  codec("rank", m.rank);
  codec("source", m.source);
  codec("tag", m.tag);
  codec("sequence", m.sequence);
  codec("age", m.age);
}
void fields(auto& codec, Is<CandidateEntry> auto& m) {
  codec("member", m.member);
  codec("world_size", m.world_size);
  codec("standby", m.standby);
  codec("waits_for_holder", m.waits_for_holder);
  codec("age", m.age);
  codec("left", m.left);
}
void fields(auto& codec, Is<InspectGroupReply> auto& m) {
  codec("epoch", m.epoch);
  codec("world_size", m.world_size);
  codec("age", m.age);
  codec("members", m.members);
  codec("missing", m.missing);
  codec("candidates", m.candidates);
  codec("round", m.round);
  codec("confirming", m.confirming);
  codec("regroup", m.regroup);
  codec("receivers", m.receivers);
  codec("failed", m.failed);
  if (!m.failed) return;
  codec("failure_age", m.failure_age);
  codec("failure_call", m.failure_call);
  codec("failure", m.failure);
}
void fields(auto& codec, Is<WaiterEntry> auto& m) {
  codec("session", m.session);
  codec("process", m.process);
  codec("operation", m.operation);
  codec("target", m.target);
  codec("age", m.age);
  codec("left", m.left);
}
void fields(auto& codec, Is<WaitersReply> auto& m) { codec("waiters", m.waiters); }

/// Whether there is a field list for the message: such messages may be items of others.
template <class Codec, class Message>
concept HasFields = requires(Codec& codec, Message& message) {
  fields(codec, message);
};

}  // namespace muster::wire
