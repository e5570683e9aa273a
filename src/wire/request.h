#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/result.h"
#include "muster/types.h"
#include "wire/frame.h"
#include "wire/operation.h"

// The requests, one struct each. All views point into the frame they were decoded from.
//
// Body of a request frame:
//    u64  timeout_us        time the caller has left, from receipt; clamped to 30 days
//    u32  count, u64[]      acknowledged: ids of replies that were received and used
//    ...                    the fields of the operation, in the order they have below
//    [u8 tag, u32 length, bytes]*   optional fields; unknown tags are skipped
//
// A byte string is a u32 length and the bytes, a list is a u32 count and the items, an optional
// is a u8 (0 or 1) and then the value, an enum or bool in a fixed field is a u8. A duration is a
// u64 of microseconds; a longer one than `duration_max` (100 years) is read as that.

namespace muster::wire {

/// The most ids that one frame may carry; further ones go into the next frame.
inline constexpr std::uint32_t ids_per_frame_max = 65536;
/// The most streams that one `Recover` may ask for.
inline constexpr std::uint32_t streams_per_recover_max = 65536;
/// The most candidates that a list of members tells of, beside the members.
inline constexpr std::uint32_t candidates_listed_max = 65536;
/// The most entries on one page of a list, but for servers whose `keys_per_operation_max` is more.
inline constexpr std::uint32_t list_entries_max = 4096;
/// The longest duration in any field but the timeout of a request.
inline constexpr Duration duration_max = std::chrono::hours(24 * 365 * 100);

/// Stays for as long as nobody removes it and, if given, at most this long.
using Ttl = std::optional<Duration>;

struct Set {
  std::string_view key;
  std::string_view value;
  Ttl ttl;  ///< none: lives until removed (clears an older one)
  bool only_if_absent = false;
  bool bind_to_session = false;  ///< the key goes when this session dies
};
struct Get {  ///< waits for the key until the timeout; zero asks once
  std::string_view key;
};
struct Take {  ///< as Get, and removes the key; one winner
  std::string_view key;
};
struct Add {
  std::string_view key;
  std::int64_t delta = 0;
};
struct CompareSet {
  std::string_view key;
  std::optional<std::string_view> expected;  ///< none: the key must be absent
  std::string_view desired;
  Ttl ttl;
};
struct Append {
  std::string_view key;
  std::string_view suffix;
};
struct Remove {
  std::vector<std::string_view> keys;
};
struct Exists {
  std::vector<std::string_view> keys;
};
struct Wait {  ///< until all are present at one instant
  std::vector<std::string_view> keys;
};
struct MultiGet {  ///< asks once
  std::vector<std::string_view> keys;
};
struct KeyValue {
  std::string_view key;
  std::string_view value;
};
struct MultiSet {  ///< all or none
  std::vector<KeyValue> entries;
  Ttl ttl;
};
enum class ListKind : std::uint8_t { keys = 0, objects = 1 };
struct List {
  ListKind kind = ListKind::keys;  ///< objects: payloads of streams and rounds
  std::string_view prefix;
  std::uint64_t cursor = 0;     ///< 0: from the start; else as the last page gave it
  std::uint32_t count_max = 0;  ///< of entries on the page; 0: the server's choice
};
struct Touch {
  std::string_view key;
  Ttl ttl;  ///< none: clears it
};

struct Join {
  std::string_view group;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  Duration data_expiration{};  ///< zero: nothing expires
  bool standby = false;        ///< wait as a candidate when the group is whole
  std::string_view info;       ///< shown to the other members
};
struct Leave {
  std::uint64_t epoch = 0;
};
struct Regroup {
  std::uint64_t epoch = 0;
  std::uint64_t attempt = 0;     ///< from 1, this rank's count of regroups in the epoch
  std::uint64_t next_round = 0;  ///< this rank's next collective
  std::uint32_t new_size = 0;    ///< 0: the survivors, renumbered densely
  std::uint32_t min_size = 0;    ///< 0: all live members must come
};
struct Members {
  std::uint64_t epoch = 0;
};
struct ReportDead {
  ProcessId process;
  std::string_view reason;
};

struct CancelRegroup {
  std::uint64_t epoch = 0;
  std::uint64_t attempt = 0;  ///< as the regroup that it ends
};

struct CollectiveCall {  ///< one rank's part of one round
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;  ///< from 1
  Collective collective = Collective::barrier;
  std::uint32_t root = 0;  ///< broadcast, gather, scatter; else 0
  std::uint32_t codec = 0;
  std::vector<std::string_view> values;  ///< none, one, or (scatter's root) one per rank
};
struct CancelRound {
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;
};
struct Send {
  std::uint64_t epoch = 0;
  std::uint32_t destination = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;  ///< from 0 per (epoch, source, destination, tag)
  std::uint32_t codec = 0;
  std::string_view value;
};
struct Receive {
  std::uint64_t epoch = 0;
  std::uint32_t source = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;
  std::uint32_t codec = 0;  ///< the one the caller can decode
};
struct ExpireData {
  std::uint64_t epoch = 0;
  Duration older_than{};
};
struct StreamName {
  std::uint32_t destination = 0;
  std::uint64_t tag = 0;
};
struct Recover {  ///< asks what became of calls without an answer
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;  ///< 0: no round in doubt
  std::vector<StreamName> streams;
};
struct Status {};
struct Sessions {           ///< of the caller's namespace, by their ids
  std::uint64_t after = 0;  ///< only those with a higher id
};
struct Groups {            ///< of the caller's namespace, by their names
  std::string_view after;  ///< only those with a later name
};
struct InspectGroup {
  std::string_view group;
};
struct Waiters {            ///< requests that wait in the caller's namespace, by session
  std::uint64_t after = 0;  ///< only those of sessions with a higher id
};

using RequestBody =
    std::variant<Set, Get, Take, Add, CompareSet, Append, Remove, Exists, Wait, MultiGet, MultiSet,
                 List, Touch, Join, Leave, Regroup, Members, ReportDead, CancelRegroup,
                 CollectiveCall, CancelRound, Send, Receive, ExpireData, Recover, Status, Sessions,
                 Groups, InspectGroup, Waiters>;

struct Request {
  std::uint64_t id = 0;
  Duration timeout{};
  std::vector<std::uint64_t> acknowledged;
  RequestBody body;
};

Operation operation_of(const RequestBody& body);

/// Appends one whole request frame.
void append_request(std::string& out, const Request& request);

/// The same in two steps, for requests that may have to be sent again: the fields of the operation
/// once, and a frame around them (`request.body` is not looked at) each time.
void append_operation(std::string& out, const RequestBody& body);
void append_request(std::string& out, const Request& request, Operation operation,
                    std::string_view operation_fields);

/// Decodes a request frame into `request`, whose memory is used again.
///
/// errors  unsupported (unknown operation: answered, the connection goes on, and `decode_ids` still
///         tells what the frame acknowledges),
///         protocol_error (the bytes do not match the operation: the connection is closed)
Result<void> decode_request(const Frame& frame, Request& request);

/// The one-way frames that carry a list of request ids: acknowledge, abandon, heartbeat.
void append_ids(std::string& out, FrameType type, std::uint64_t id,
                const std::vector<std::uint64_t>& request_ids);
/// Decodes them into `request_ids`, whose memory is used again. Also takes a request frame, of any
/// operation: the ids that its prefix acknowledges.
///
/// errors  protocol_error
Result<void> decode_ids(const Frame& frame, std::vector<std::uint64_t>& request_ids);

/// Goodbye of either side, with a reason for people.
void append_goodbye(std::string& out, std::string_view reason);
Result<std::string_view> decode_goodbye(const Frame& frame);

}  // namespace muster::wire
