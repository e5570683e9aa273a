#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/error.h"
#include "muster/group_event.h"
#include "muster/result.h"
#include "wire/fields.h"
#include "wire/frame.h"

// The bodies of replies (header code 0). wire/operation_table.h says which operation has which.
// All views point into the frame. The fields stand in their order on the wire; after them come
// optional fields in the form that requests have: unknown ones are skipped. A reply with another
// code carries an Error as its body, see wire/error_body.h.

MUSTER_BEGIN_NAMESPACE
constexpr std::uint8_t first_number(GroupEventKind) { return 1; }
constexpr std::uint8_t last_number(GroupEventKind) { return 8; }
MUSTER_END_NAMESPACE

namespace muster::wire {

struct EmptyReply {};
void fields(auto&, Is<EmptyReply> auto&) {}

struct AppliedReply {
  bool applied = false;
  std::optional<std::string_view> value;  ///< compare_set, not applied: what is there
};
void fields(auto& codec, Is<AppliedReply> auto& m) {
  codec("applied", m.applied);
  codec("value", m.value);
}

struct ValueReply {
  std::string_view value;
};
void fields(auto& codec, Is<ValueReply> auto& m) { codec("value", m.value); }

struct NumberReply {
  std::int64_t number = 0;  ///< add: new value; append: new length; remove, expire_data: how many
                            ///< went; send: sequence; queue_push, queue_length: items
};
void fields(auto& codec, Is<NumberReply> auto& m) { codec("number", m.number); }

struct PresenceReply {
  std::vector<bool> present;  ///< one per key
};
void fields(auto& codec, Is<PresenceReply> auto& m) { codec("present", m.present); }

struct ValuesReply {
  std::vector<std::optional<std::string_view>> values;  ///< one per key
};
void fields(auto& codec, Is<ValuesReply> auto& m) { codec("values", m.values); }

struct ListEntry {
  std::string_view name;  ///< key, or a path that names the object
  std::uint64_t value_bytes = 0;
  std::optional<Duration> ttl;  ///< what is left of it
  bool bound = false;           ///< to a session
};
template <>
inline constexpr std::size_t item_bytes_min<ListEntry> = 14;
void fields(auto& codec, Is<ListEntry> auto& m) {
  codec("name", m.name);
  codec("value_bytes", m.value_bytes);
  codec("ttl", m.ttl);
  codec("bound", m.bound);
}

struct ListReply {
  std::vector<ListEntry> entries;
  std::uint64_t cursor = 0;  ///< 0: that was the last page
};
void fields(auto& codec, Is<ListReply> auto& m) {
  codec("entries", m.entries);
  codec("cursor", m.cursor);
}

struct FormedReply {
  std::uint64_t epoch = 0;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint32_t hosting_rank = 0;  ///< the member that leaves each barrier last
  std::uint32_t candidates = 0;    ///< that wait at the moment
  Duration data_expiration{};
};
void fields(auto& codec, Is<FormedReply> auto& m) {
  codec("epoch", m.epoch);
  codec("rank", m.rank);
  codec("world_size", m.world_size);
  codec("hosting_rank", m.hosting_rank);
  codec("candidates", m.candidates);
  codec("data_expiration", m.data_expiration);
}

enum class MemberState : std::uint8_t {
  live = 0,
  silent = 1,
  lost = 2,
  left = 3,
  candidate = 4,
  away = 5,  ///< its connection has ended, its session stands
};
constexpr std::uint8_t first_number(MemberState) { return 0; }
constexpr std::uint8_t last_number(MemberState) { return 5; }
struct MemberEntry {
  std::uint32_t rank = 0;
  MemberState state = MemberState::live;
  ProcessInfo process;
  Duration silence{};
  std::string_view info;
};
template <>
inline constexpr std::size_t item_bytes_min<MemberEntry> = 45;
void fields(auto& codec, Is<MemberEntry> auto& m) {
  codec("rank", m.rank);
  codec("state", m.state);
  codec("process", m.process);
  codec("silence", m.silence);
  codec("info", m.info);
}

struct CancelTakeReply {
  bool given_back = false;  ///< what the request had taken; its answer is `cancelled` now
};
void fields(auto& codec, Is<CancelTakeReply> auto& m) {
  codec.further(1, "given_back", m.given_back);
}

struct MembersReply {
  std::vector<MemberEntry> members;
  /// Of the first of them, which are the epoch's members: their ranks in the epoch that has
  /// regrouped into this one. Empty: none was there.
  std::vector<std::optional<std::uint32_t>> previous_ranks{};
};
void fields(auto& codec, Is<MembersReply> auto& m) {
  codec("members", m.members);
  codec.further(1, "previous_ranks", m.previous_ranks);
}

struct RoundReply {
  std::vector<RankRange> unconfirmed;  ///< barrier at the hosting rank
  /// all_gather, gather at the root: by rank; broadcast, scatter: one (the root: none); barrier:
  /// none. Last, so that a shared payload can follow a head.
  std::vector<std::string_view> values;
};
void fields(auto& codec, Is<RoundReply> auto& m) {
  codec("unconfirmed", m.unconfirmed);
  codec("values", m.values);
}

struct ReceiveReply {
  std::uint64_t sequence = 0;
  std::uint32_t codec = 0;
  std::string_view value;
};
void fields(auto& codec, Is<ReceiveReply> auto& m) {
  codec("sequence", m.sequence);
  codec("codec", m.codec);
  codec("value", m.value);
}

enum class RoundState : std::uint8_t { none = 0, not_called = 1, done = 2, failed = 3 };
constexpr std::uint8_t first_number(RoundState) { return 0; }
constexpr std::uint8_t last_number(RoundState) { return 3; }
struct RecoverReply {
  RoundState state = RoundState::none;
  std::vector<std::uint64_t> next_sequences;  ///< one per stream that was asked for
  std::optional<Error> error;                 ///< on the wire only if failed
  RoundReply round;                           ///< on the wire only if done; last, as in RoundReply
};
void fields(auto& codec, Is<RecoverReply> auto& m) {
  codec("state", m.state);
  codec("next_sequences", m.next_sequences);
  if (m.state == RoundState::failed) codec("error", m.error);
  if (m.state == RoundState::done) codec("round", m.round);
}

struct StatusReply {
  std::vector<std::pair<std::string_view, std::string_view>> fields;
};
void fields(auto& codec, Is<StatusReply> auto& m) { codec("fields", m.fields); }

// What operators ask for. A page ends with the entry with which it becomes long: ask again with the
// last entry; an empty page is the end.

struct SessionEntry {
  std::uint64_t id = 0;
  ProcessInfo process;
  bool connected = false;
  Duration silence{};  ///< since its last byte
  std::uint32_t groups = 0;
  std::uint32_t waiting = 0;  ///< its requests that wait
  std::uint64_t key = 0;      ///< as in SessionsReply, which has it on the wire
};
template <>
inline constexpr std::size_t item_bytes_min<SessionEntry> = 53;
void fields(auto& codec, Is<SessionEntry> auto& m) {
  codec("id", m.id);
  codec("process", m.process);
  codec("connected", m.connected);
  codec("silence", m.silence);
  codec("groups", m.groups);
  codec("waiting", m.waiting);
}

struct SessionsReply {
  std::vector<SessionEntry> sessions;
  /// Of the first of them: the id of the key that its client has proved; 0, or none: it has none.
  std::vector<std::uint64_t> keys{};
};
void fields(auto& codec, Is<SessionsReply> auto& m) {
  codec("sessions", m.sessions);
  codec.further(1, "keys", m.keys);
}

struct GroupEntry {
  std::string_view name;
  std::uint64_t epoch = 0;       ///< 0: it forms
  std::uint32_t world_size = 0;  ///< 0: only joiners that are refused soon
  std::uint32_t live = 0;        ///< members; while it forms: ranks that wait
  std::uint32_t candidates = 0;
  std::uint64_t round = 0;  ///< that ranks wait in; 0: none
  Duration round_age{};
};
template <>
inline constexpr std::size_t item_bytes_min<GroupEntry> = 40;
void fields(auto& codec, Is<GroupEntry> auto& m) {
  codec("name", m.name);
  codec("epoch", m.epoch);
  codec("world_size", m.world_size);
  codec("live", m.live);
  codec("candidates", m.candidates);
  codec("round", m.round);
  codec("round_age", m.round_age);
}

struct GroupsReply {
  std::vector<GroupEntry> groups;
};
void fields(auto& codec, Is<GroupsReply> auto& m) { codec("groups", m.groups); }

struct RoundEntry {
  std::uint64_t number = 0;
  std::string_view call;  ///< "broadcast root=1 codec=3"
  Duration age{};         ///< since the first rank called it
  std::vector<RankRange> called;
  std::vector<RankRange> missing;
  std::uint32_t older_rounds = 0;  ///< all who are needed came, but of so many open rounds before
                                   ///< it the oldest waits for `missing`; 0: it does itself
};
void fields(auto& codec, Is<RoundEntry> auto& m) {
  codec("number", m.number);
  codec("call", m.call);
  codec("age", m.age);
  codec("called", m.called);
  codec("missing", m.missing);
  codec("older_rounds", m.older_rounds);
}

struct RegroupEntry {          ///< one that is not decided
  std::uint32_t new_size = 0;  ///< as that of the request
  std::uint32_t min_size = 0;
  Duration age{};
  std::vector<RankRange> called;
  std::vector<RankRange> missing;  ///< also ranks for which there is no candidate
};
void fields(auto& codec, Is<RegroupEntry> auto& m) {
  codec("new_size", m.new_size);
  codec("min_size", m.min_size);
  codec("age", m.age);
  codec("called", m.called);
  codec("missing", m.missing);
}

struct ReceiverEntry {  ///< a rank that waits for an object
  std::uint32_t rank = 0;
  std::uint32_t source = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;
  Duration age{};
};
template <>
inline constexpr std::size_t item_bytes_min<ReceiverEntry> = 32;
void fields(auto& codec, Is<ReceiverEntry> auto& m) {
  codec("rank", m.rank);
  codec("source", m.source);
  codec("tag", m.tag);
  codec("sequence", m.sequence);
  codec("age", m.age);
}

struct CandidateEntry {  ///< a join that waits beside the members, or the seats
  MemberEntry member;    ///< live, silent or away; its rank: the one it asked for; without `info`
  std::uint32_t world_size = 0;
  bool standby = false;
  bool waits_for_holder = false;  ///< its rank's holder is silent, not lost; else: for a regroup
  Duration age{};
  Duration left{};  ///< until its deadline
};
template <>
inline constexpr std::size_t item_bytes_min<CandidateEntry> = 67;
void fields(auto& codec, Is<CandidateEntry> auto& m) {
  codec("member", m.member);
  codec("world_size", m.world_size);
  codec("standby", m.standby);
  codec("waits_for_holder", m.waits_for_holder);
  codec("age", m.age);
  codec("left", m.left);
}

struct InspectGroupReply {
  std::uint64_t epoch = 0;  ///< 0: it forms
  std::uint32_t world_size = 0;
  Duration age{};                    ///< of the epoch; while it forms: since the first joiner came
  std::vector<MemberEntry> members;  ///< by rank; while it forms: who is there
  std::vector<RankRange> missing;    ///< while it forms: who is not
  std::vector<CandidateEntry> candidates;
  std::optional<RoundEntry> round;       ///< that is not decided
  std::optional<RoundEntry> confirming;  ///< a decided barrier, in which the hosting rank waits
                                         ///< until those that are missing have confirmed it
  std::optional<RegroupEntry> regroup;
  std::vector<ReceiverEntry> receivers;
  bool failed = false;              ///< a round has; the last one:
  Duration failure_age{};           ///< only if `failed`
  std::string_view failure_call;    ///< only if `failed`: as RoundEntry::call
  std::optional<Error> failure;     ///< only if `failed`
  std::vector<RankRange> unheld{};  ///< members whose processes hold no handle of the group
};
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
  if (m.failed) {
    codec("failure_age", m.failure_age);
    codec("failure_call", m.failure_call);
    codec("failure", m.failure);
  }
  codec.further(1, "unheld", m.unheld);
}

struct WaiterEntry {
  std::uint64_t session = 0;
  ProcessInfo process;
  std::string_view operation;
  std::string_view target;  ///< the missing keys, or the group and what in it
  Duration age{};
  Duration left{};  ///< until its deadline
};
template <>
inline constexpr std::size_t item_bytes_min<WaiterEntry> = 60;
void fields(auto& codec, Is<WaiterEntry> auto& m) {
  codec("session", m.session);
  codec("process", m.process);
  codec("operation", m.operation);
  codec("target", m.target);
  codec("age", m.age);
  codec("left", m.left);
}

struct WaitersReply {
  std::vector<WaiterEntry> waiters;
};
void fields(auto& codec, Is<WaitersReply> auto& m) { codec("waiters", m.waiters); }

struct NameSpaceEntry {
  std::string_view name;  ///< empty: the default one
  std::uint64_t keys = 0;
  std::uint64_t memory_bytes = 0;  ///< charged to it
  std::uint32_t groups = 0;
  std::uint32_t sessions = 0;
  std::string_view maker;        ///< the unit for which it counts; empty: none
  std::optional<Duration> idle;  ///< since its last session ended; none: it has some
};
template <>
inline constexpr std::size_t item_bytes_min<NameSpaceEntry> = 33;
void fields(auto& codec, Is<NameSpaceEntry> auto& m) {
  codec("name", m.name);
  codec("keys", m.keys);
  codec("memory_bytes", m.memory_bytes);
  codec("groups", m.groups);
  codec("sessions", m.sessions);
  codec("maker", m.maker);
  codec("idle", m.idle);
}

struct NameSpacesReply {
  std::vector<NameSpaceEntry> name_spaces;
};
void fields(auto& codec, Is<NameSpacesReply> auto& m) { codec("namespaces", m.name_spaces); }

struct HistoryRecord {
  std::uint64_t serial = 0;
  GroupEventKind what = GroupEventKind::formed;
  Duration age{};     ///< since the first time
  Duration lasted{};  ///< from the first time to the last
  std::uint64_t count = 0;
  std::string_view group;
  std::uint64_t epoch = 0;
  std::uint32_t world_size = 0;
  std::optional<ProcessInfo> process;
  bool has_error = false;
  std::optional<Error> error;  ///< only if `has_error`; without its group and epoch
};
template <>
inline constexpr std::size_t item_bytes_min<HistoryRecord> = 51;
void fields(auto& codec, Is<HistoryRecord> auto& m) {
  codec("serial", m.serial);
  codec("what", m.what);
  codec("age", m.age);
  codec("lasted", m.lasted);
  codec("count", m.count);
  codec("group", m.group);
  codec("epoch", m.epoch);
  codec("world_size", m.world_size);
  codec("process", m.process);
  codec("has_error", m.has_error);
  if (m.has_error) codec("error", m.error);
}

struct HistoryReply {
  std::vector<HistoryRecord> records;  ///< the oldest first
  std::uint64_t forgotten = 0;         ///< older ones of the namespace, for which there is no place
  Duration known_for{};
};
void fields(auto& codec, Is<HistoryReply> auto& m) {
  codec("records", m.records);
  codec("forgotten", m.forgotten);
  codec("known_for", m.known_for);
}

// Both are instantiated for the structs above that are replies.

/// Appends a body.
template <class Reply>
void append_body(std::string& out, const Reply& reply);

/// Decodes a whole body.
///
/// errors  protocol_error
template <class Reply>
Result<Reply> decode_body(std::string_view body);

}  // namespace muster::wire
