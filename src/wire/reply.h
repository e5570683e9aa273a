#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/error.h"
#include "muster/result.h"
#include "wire/frame.h"
#include "wire/operation.h"

// The bodies of replies (header code 0), one struct per kind. All views point into the frame.
// The fields have the order and the encoding of wire/request.h; after them come optional fields in
// the form that requests have: unknown ones are skipped.
// A reply with another code carries an Error as its body, see wire/error_body.h.

namespace muster::wire {

struct EmptyReply {};  ///< multi_set, touch, wait, leave, report_dead, cancel_regroup, cancel_round
struct AppliedReply {  ///< set, compare_set: whether it was applied
  bool applied = false;
  std::optional<std::string_view> value;  ///< compare_set, not applied: what is there
};
struct ValueReply {  ///< get, take
  std::string_view value;
};
struct NumberReply {        ///< add: new value; append: new length; remove: how many went;
  std::int64_t number = 0;  ///< expire_data: how many expired; send: sequence
};
struct PresenceReply {  ///< exists: one per key
  std::vector<bool> present;
};
struct ValuesReply {  ///< multi_get: one per key
  std::vector<std::optional<std::string_view>> values;
};
struct ListEntry {
  std::string_view name;  ///< key, or a path that names the object
  std::uint64_t value_bytes = 0;
  std::optional<Duration> ttl;  ///< what is left of it
  bool bound = false;           ///< to a session
};
struct ListReply {
  std::vector<ListEntry> entries;
  std::uint64_t cursor = 0;  ///< 0: that was the last page
};
struct FormedReply {  ///< join, regroup
  std::uint64_t epoch = 0;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint32_t hosting_rank = 0;  ///< the member that leaves each barrier last
  std::uint32_t candidates = 0;    ///< that wait at the moment
  Duration data_expiration{};
};
enum class MemberState : std::uint8_t {
  live = 0,
  silent = 1,
  lost = 2,
  left = 3,
  candidate = 4,
  away = 5,  ///< its connection has ended, its session stands
};
struct MemberEntry {
  std::uint32_t rank = 0;
  MemberState state = MemberState::live;
  ProcessInfo process;
  Duration silence{};
  std::string_view info;
};
struct MembersReply {
  std::vector<MemberEntry> members;
};
struct RoundReply {                      ///< collective
  std::vector<RankRange> unconfirmed;    ///< barrier at the hosting rank
  std::vector<std::string_view> values;  ///< all_gather, gather at the root: by rank;
                                         ///< broadcast, scatter: one (the root: none);
                                         ///< barrier: none.
                                         ///< Last, so that a shared payload can follow a head
};
struct ReceiveReply {
  std::uint64_t sequence = 0;
  std::uint32_t codec = 0;
  std::string_view value;
};
enum class RoundState : std::uint8_t { none = 0, not_called = 1, done = 2, failed = 3 };
struct RecoverReply {
  RoundState state = RoundState::none;
  std::vector<std::uint64_t> next_sequences;  ///< one per stream that was asked for
  std::optional<Error> error;                 ///< on the wire only if failed
  RoundReply round;                           ///< on the wire only if done; last, as in RoundReply
};
struct StatusReply {
  std::vector<std::pair<std::string_view, std::string_view>> fields;
};

// What operators ask for. Pages end where the next one would be too long for a reply: ask again
// with the last entry; an empty page is the end.

struct SessionEntry {
  std::uint64_t id = 0;
  ProcessInfo process;
  bool connected = false;
  Duration silence{};  ///< since its last byte
  std::uint32_t groups = 0;
  std::uint32_t waiting = 0;  ///< its requests that wait
};
struct SessionsReply {
  std::vector<SessionEntry> sessions;
};
struct GroupEntry {
  std::string_view name;
  std::uint64_t epoch = 0;       ///< 0: it forms
  std::uint32_t world_size = 0;  ///< 0: only joiners that are refused soon
  std::uint32_t live = 0;        ///< members; while it forms: ranks that wait
  std::uint32_t candidates = 0;
  std::uint64_t round = 0;  ///< that ranks wait in; 0: none
  Duration round_age{};
};
struct GroupsReply {
  std::vector<GroupEntry> groups;
};
struct RoundEntry {
  std::uint64_t number = 0;
  std::string_view call;  ///< "broadcast root=1 codec=3"
  Duration age{};         ///< since the first rank called it
  std::vector<RankRange> called;
  std::vector<RankRange> missing;
  std::uint32_t older_rounds = 0;  ///< all who are needed came, but of so many open rounds before
                                   ///< it the oldest waits for `missing`; 0: it does itself
};
struct RegroupEntry {  ///< one that is not decided
  std::uint32_t new_size = 0;
  std::uint32_t min_size = 0;
  Duration age{};
  std::vector<RankRange> called;
  std::vector<RankRange> missing;  ///< also ranks for which there is no candidate
};
struct ReceiverEntry {  ///< a rank that waits for an object
  std::uint32_t rank = 0;
  std::uint32_t source = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;
  Duration age{};
};
struct CandidateEntry {  ///< a join that waits beside the members, or the seats
  MemberEntry member;    ///< live, silent or away; its rank: the one it asked for; without `info`
  std::uint32_t world_size = 0;
  bool standby = false;
  bool waits_for_holder = false;  ///< its rank's holder is silent, not lost; else: for a regroup
  Duration age{};
  Duration left{};  ///< until its deadline
};
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
  bool failed = false;            ///< a round has; the last one:
  Duration failure_age{};         ///< only if `failed`
  std::string_view failure_call;  ///< only if `failed`: as RoundEntry::call
  std::optional<Error> failure;   ///< only if `failed`
};
struct WaiterEntry {
  std::uint64_t session = 0;
  ProcessInfo process;
  std::string_view operation;
  std::string_view target;  ///< the missing keys, or the group and what in it
  Duration age{};
  Duration left{};  ///< until its deadline
};
struct WaitersReply {
  std::vector<WaiterEntry> waiters;
};

// Each append_ writes a body, each decode_ reads a whole one.
// decode errors: protocol_error

void append_body(std::string& out, const EmptyReply& reply);
void append_body(std::string& out, const AppliedReply& reply);
void append_body(std::string& out, const ValueReply& reply);
void append_body(std::string& out, const NumberReply& reply);
void append_body(std::string& out, const PresenceReply& reply);
void append_body(std::string& out, const ValuesReply& reply);
void append_body(std::string& out, const ListReply& reply);
void append_body(std::string& out, const FormedReply& reply);
void append_body(std::string& out, const MembersReply& reply);
void append_body(std::string& out, const RoundReply& reply);
void append_body(std::string& out, const ReceiveReply& reply);
void append_body(std::string& out, const RecoverReply& reply);
void append_body(std::string& out, const StatusReply& reply);
void append_body(std::string& out, const SessionsReply& reply);
void append_body(std::string& out, const GroupsReply& reply);
void append_body(std::string& out, const InspectGroupReply& reply);
void append_body(std::string& out, const WaitersReply& reply);

/// Instantiated for the structs above.
template <class Reply>
Result<Reply> decode_body(std::string_view body);

}  // namespace muster::wire
