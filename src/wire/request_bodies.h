#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "muster/types.h"
#include "wire/fields.h"
#include "wire/operation.h"

// The bodies of requests: one struct per operation, its fields in their order on the wire. All
// views point into the frame they were decoded from. What else is known of an operation, such as
// its number and its reply, stands in wire/operation_table.h.

namespace muster::wire {

/// The most streams that one `Recover` may ask for.
inline constexpr std::uint32_t streams_per_recover_max = 65536;
/// The most candidates that a list of members tells of, beside the members.
inline constexpr std::uint32_t candidates_listed_max = 65536;
/// The most tenants that a `Join` may name beside its own.
inline constexpr std::uint32_t other_tenants_max = 8;
/// The most entries on one page of a list, but for servers whose `keys_per_operation_max` is more.
inline constexpr std::uint32_t list_entries_max = 4096;

/// Stays for as long as nobody removes it and, if given, at most this long.
using Ttl = std::optional<Duration>;

struct Set {
  std::string_view key;
  std::string_view value;
  Ttl ttl;  ///< none: lives until removed (clears an older one)
  bool only_if_absent = false;
  bool bind_to_session = false;  ///< the key goes when this session dies
};
void fields(auto& codec, Is<Set> auto& m) {
  codec("key", m.key);
  codec("value", m.value);
  codec("ttl", m.ttl);
  codec("only_if_absent", m.only_if_absent);
  codec("bind_to_session", m.bind_to_session);
}

struct Get {  ///< waits for the key until the timeout; zero asks once
  std::string_view key;
};
void fields(auto& codec, Is<Get> auto& m) { codec("key", m.key); }

struct Take {  ///< as Get, and removes the key; one winner
  std::string_view key;
};
void fields(auto& codec, Is<Take> auto& m) { codec("key", m.key); }

struct Add {
  std::string_view key;
  std::int64_t delta = 0;
};
void fields(auto& codec, Is<Add> auto& m) {
  codec("key", m.key);
  codec("delta", m.delta);
}

struct CompareSet {
  std::string_view key;
  std::optional<std::string_view> expected;  ///< none: the key must be absent
  std::string_view desired;
  Ttl ttl;
};
void fields(auto& codec, Is<CompareSet> auto& m) {
  codec("key", m.key);
  codec("expected", m.expected);
  codec("desired", m.desired);
  codec("ttl", m.ttl);
}

struct Append {
  std::string_view key;
  std::string_view suffix;
};
void fields(auto& codec, Is<Append> auto& m) {
  codec("key", m.key);
  codec("suffix", m.suffix);
}

struct Remove {
  std::vector<std::string_view> keys;
};
void fields(auto& codec, Is<Remove> auto& m) { codec("keys", m.keys); }

struct Exists {
  std::vector<std::string_view> keys;
};
void fields(auto& codec, Is<Exists> auto& m) { codec("keys", m.keys); }

struct Wait {  ///< until all are present at one instant
  std::vector<std::string_view> keys;
};
void fields(auto& codec, Is<Wait> auto& m) { codec("keys", m.keys); }

struct MultiGet {  ///< asks once
  std::vector<std::string_view> keys;
};
void fields(auto& codec, Is<MultiGet> auto& m) { codec("keys", m.keys); }

struct KeyValue {
  std::string_view key;
  std::string_view value;
};
template <>
inline constexpr std::size_t item_bytes_min<KeyValue> = 8;
void fields(auto& codec, Is<KeyValue> auto& m) {
  codec("key", m.key);
  codec("value", m.value);
}

struct MultiSet {  ///< all or none
  std::vector<KeyValue> entries;
  Ttl ttl;
};
void fields(auto& codec, Is<MultiSet> auto& m) {
  codec("entries", m.entries);
  codec("ttl", m.ttl);
}

enum class ListKind : std::uint8_t { keys = 0, objects = 1 };
constexpr std::uint8_t first_number(ListKind) { return 0; }
constexpr std::uint8_t last_number(ListKind) { return 1; }
struct List {
  ListKind kind = ListKind::keys;  ///< objects: payloads of streams and rounds
  std::string_view prefix;
  std::uint64_t cursor = 0;     ///< 0: from the start; else as the last page gave it
  std::uint32_t count_max = 0;  ///< of entries on the page; 0: the server's choice
};
void fields(auto& codec, Is<List> auto& m) {
  codec("kind", m.kind);
  codec("prefix", m.prefix);
  codec("cursor", m.cursor);
  codec("count_max", m.count_max);
}

struct Touch {
  std::string_view key;
  Ttl ttl;  ///< none: clears it
};
void fields(auto& codec, Is<Touch> auto& m) {
  codec("key", m.key);
  codec("ttl", m.ttl);
}

struct CancelTake {
  std::uint64_t request = 0;  ///< the id of a Take or a QueuePop of the same session
  bool gives_back = false;    ///< what it has taken, unless its answer was acknowledged
};
void fields(auto& codec, Is<CancelTake> auto& m) {
  codec("request", m.request);
  codec.further(1, "gives_back", m.gives_back);
}

struct Join {
  std::string_view group;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  Duration data_expiration{};                     ///< zero: nothing expires
  bool standby = false;                           ///< wait as a candidate when the group is whole
  std::string_view info;                          ///< shown to the other members
  std::vector<std::string_view> other_tenants{};  ///< that may be in the group, beside its own
};
void fields(auto& codec, Is<Join> auto& m) {
  codec("group", m.group);
  codec("rank", m.rank);
  codec("world_size", m.world_size);
  codec("data_expiration", m.data_expiration);
  codec("standby", m.standby);
  codec("info", m.info);
  codec.further(1, "other_tenants", m.other_tenants);
}

struct Leave {
  std::uint64_t epoch = 0;
};
void fields(auto& codec, Is<Leave> auto& m) { codec("epoch", m.epoch); }

struct Regroup {
  /// As a new size: all live members and the candidates that are there.
  static constexpr std::uint32_t everyone = ~std::uint32_t{0};

  std::uint64_t epoch = 0;
  std::uint64_t attempt = 0;     ///< from 1, this rank's count of regroups in the epoch
  std::uint64_t next_round = 0;  ///< this rank's next collective
  std::uint32_t new_size = 0;    ///< 0: the survivors, renumbered densely; or `everyone`
  std::uint32_t min_size = 0;    ///< 0: all live members must come
};
void fields(auto& codec, Is<Regroup> auto& m) {
  codec("epoch", m.epoch);
  codec("attempt", m.attempt);
  codec("next_round", m.next_round);
  codec("new_size", m.new_size);
  codec("min_size", m.min_size);
}

struct Members {
  std::uint64_t epoch = 0;
};
void fields(auto& codec, Is<Members> auto& m) { codec("epoch", m.epoch); }

struct ReportDead {
  ProcessId process;
  std::string_view reason;
};
void fields(auto& codec, Is<ReportDead> auto& m) {
  codec("process", m.process);
  codec("reason", m.reason);
}

struct CancelRegroup {
  std::uint64_t epoch = 0;
  std::uint64_t attempt = 0;  ///< as the regroup that it ends
};
void fields(auto& codec, Is<CancelRegroup> auto& m) {
  codec("epoch", m.epoch);
  codec("attempt", m.attempt);
}

struct CollectiveCall {  ///< one rank's part of one round
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;  ///< from 1
  Collective collective = Collective::barrier;
  std::uint32_t root = 0;  ///< broadcast, gather, scatter; else 0
  std::uint32_t codec = 0;
  std::vector<std::string_view> values;  ///< none, one, or (scatter's root) one per rank
};
void fields(auto& codec, Is<CollectiveCall> auto& m) {
  codec("epoch", m.epoch);
  codec("round", m.round);
  codec("collective", m.collective);
  codec("root", m.root);
  codec("codec", m.codec);
  codec("values", m.values);
}

struct CancelRound {
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;
};
void fields(auto& codec, Is<CancelRound> auto& m) {
  codec("epoch", m.epoch);
  codec("round", m.round);
}

struct Interrupt {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;  ///< from 1, this rank's count of interruptions in the epoch
  std::string_view reason;
};
void fields(auto& codec, Is<Interrupt> auto& m) {
  codec("epoch", m.epoch);
  codec("number", m.number);
  codec("reason", m.reason);
}

struct Send {
  std::uint64_t epoch = 0;
  std::uint32_t destination = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;  ///< from 0 per (epoch, source, destination, tag)
  std::uint32_t codec = 0;
  std::string_view value;
};
void fields(auto& codec, Is<Send> auto& m) {
  codec("epoch", m.epoch);
  codec("destination", m.destination);
  codec("tag", m.tag);
  codec("sequence", m.sequence);
  codec("codec", m.codec);
  codec("value", m.value);
}

struct Receive {
  std::uint64_t epoch = 0;
  std::uint32_t source = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;
  std::uint32_t codec = 0;  ///< the one the caller can decode
};
void fields(auto& codec, Is<Receive> auto& m) {
  codec("epoch", m.epoch);
  codec("source", m.source);
  codec("tag", m.tag);
  codec("sequence", m.sequence);
  codec("codec", m.codec);
}

/// An ExpireData looks at no more, so that it takes no more than a few milliseconds.
inline constexpr std::uint32_t expired_objects_max = 65'536;

struct ExpireData {
  std::uint64_t epoch = 0;
  Duration older_than{};
};
void fields(auto& codec, Is<ExpireData> auto& m) {
  codec("epoch", m.epoch);
  codec("older_than", m.older_than);
}

struct StreamName {
  std::uint32_t destination = 0;
  std::uint64_t tag = 0;
};
template <>
inline constexpr std::size_t item_bytes_min<StreamName> = 12;
void fields(auto& codec, Is<StreamName> auto& m) {
  codec("destination", m.destination);
  codec("tag", m.tag);
}

struct Recover {  ///< asks what became of calls without an answer
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;  ///< 0: no round in doubt
  std::vector<StreamName> streams;
};
void fields(auto& codec, Is<Recover> auto& m) {
  codec("epoch", m.epoch);
  codec("round", m.round);
  codec("streams", m.streams);
}

struct Status {};
void fields(auto&, Is<Status> auto&) {}

struct Sessions {           ///< of the caller's namespace, by their ids
  std::uint64_t after = 0;  ///< only those with a higher id
};
void fields(auto& codec, Is<Sessions> auto& m) { codec("after", m.after); }

struct Groups {            ///< of the caller's namespace, by their names
  std::string_view after;  ///< only those with a later name
};
void fields(auto& codec, Is<Groups> auto& m) { codec("after", m.after); }

struct InspectGroup {
  std::string_view group;
};
void fields(auto& codec, Is<InspectGroup> auto& m) { codec("group", m.group); }

struct Waiters {            ///< requests that wait in the caller's namespace, by session
  std::uint64_t after = 0;  ///< only those of sessions with a higher id
};
void fields(auto& codec, Is<Waiters> auto& m) { codec("after", m.after); }

struct NameSpaces {                       ///< all of the server, by their names
  std::optional<std::string_view> after;  ///< only those with a later name; none: all
};
void fields(auto& codec, Is<NameSpaces> auto& m) { codec("after", m.after); }

struct DropNameSpace {
  std::string_view name;
};
void fields(auto& codec, Is<DropNameSpace> auto& m) { codec("name", m.name); }

struct History {            ///< what has happened to the groups of the caller's namespace
  std::string_view group;   ///< empty: to all
  std::uint64_t after = 0;  ///< only what has a later serial
};
void fields(auto& codec, Is<History> auto& m) {
  codec("group", m.group);
  codec("after", m.after);
}

struct WhoAmI {};
void fields(auto&, Is<WhoAmI> auto&) {}

struct QueuePush {  ///< behind the others in the key's queue, which is beside its value
  std::string_view key;
  std::string_view item;
};
void fields(auto& codec, Is<QueuePush> auto& m) {
  codec("key", m.key);
  codec("item", m.item);
}

struct QueuePop {  ///< waits for an item until the timeout; zero asks once; one winner
  std::string_view key;
};
void fields(auto& codec, Is<QueuePop> auto& m) { codec("key", m.key); }

struct QueueLength {
  std::string_view key;
};
void fields(auto& codec, Is<QueueLength> auto& m) { codec("key", m.key); }

struct EndSession {
  std::uint64_t session = 0;  ///< of the caller's namespace; 0: all of `process` there
  ProcessId process;          ///< only if `session` is 0
  std::string_view reason;
};
void fields(auto& codec, Is<EndSession> auto& m) {
  codec("session", m.session);
  codec("process", m.process);
  codec("reason", m.reason);
}

struct Drain {
  bool cancels = false;              ///< one that was begun
  std::optional<Duration> time_max;  ///< then it is over, whoever is there; none: it waits for all
  std::string_view reason;
};
void fields(auto& codec, Is<Drain> auto& m) {
  codec("cancels", m.cancels);
  codec("time_max", m.time_max);
  codec("reason", m.reason);
}

}  // namespace muster::wire
