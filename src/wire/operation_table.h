#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "wire/operation.h"
#include "wire/reply.h"
#include "wire/request_bodies.h"
#include "wire/rights.h"
#include "wire/settings.h"

// The operations, one row each. What client and server must agree on stands in the row. All else
// that depends on the operation is derived from it: the decoders, which replies the server keeps
// and the client acknowledges, which requests are refused first, the counters of status, the type
// of the reply. A row without one of the facts does not compile, nor does an operation without
// fields, without a function of the engine or without a check of the client.

namespace muster::wire {

/// What of a request changes the server's state. The server keeps the reply to what changes
/// something until it is acknowledged, and answers a repetition with it.
enum class StateChange : std::uint8_t {
  none,
  received,  ///< the receipt of the reply; the server keeps only replies whose receipt counts
  executed,
};

/// Whether the request may wait on the server, until its timeout. What waits is not in flight.
enum class Answered : std::uint8_t { at_once, later };

/// What the request does to the server's memory. When memory is short, those that bring something
/// to keep are refused first and those that free some last.
enum class Memory : std::uint8_t { keeps, reads, frees };

struct OperationFacts {
  Operation number;       ///< part of the protocol: never changed, never used again
  std::string_view name;  ///< in errors, logs, status and documents
  Right right;            ///< that a session needs to ask for it
  StateChange change;
  Answered answered;
  Memory memory;

  /// A constructor, since an aggregate could leave facts out.
  constexpr OperationFacts(std::uint16_t its_number, std::string_view its_name, Right its_right,
                           StateChange its_change, Answered its_answered, Memory its_memory)
      : number(static_cast<Operation>(its_number)),
        name(its_name),
        right(its_right),
        change(its_change),
        answered(its_answered),
        memory(its_memory) {}
};

template <class RequestBody, class ReplyBody>
struct Row : OperationFacts {
  using Request = RequestBody;
  using Reply = ReplyBody;
  using OperationFacts::OperationFacts;
};

// clang-format off
inline constexpr auto operation_table = [] {
  using enum Right;
  using enum StateChange;
  using enum Answered;
  using enum Memory;
  return std::tuple{
      // Keys.
      Row<Set, AppliedReply>          ( 1, "set",            write,     executed, at_once, keeps),
      Row<Get, ValueReply>            ( 2, "get",            read,      none,     later,   reads),
      Row<Take, ValueReply>           ( 3, "take",           write,     executed, later,   frees),
      Row<Add, NumberReply>           ( 4, "add",            write,     executed, at_once, keeps),
      Row<CompareSet, AppliedReply>   ( 5, "compare_set",    write,     executed, at_once, keeps),
      Row<Append, NumberReply>        ( 6, "append",         write,     executed, at_once, keeps),
      Row<Remove, NumberReply>        ( 7, "remove",         write,     executed, at_once, frees),
      Row<Exists, PresenceReply>      ( 8, "exists",         read,      none,     at_once, reads),
      Row<Wait, EmptyReply>           ( 9, "wait",           read,      none,     later,   reads),
      Row<MultiGet, ValuesReply>      (10, "multi_get",      read,      none,     at_once, reads),
      Row<MultiSet, EmptyReply>       (11, "multi_set",      write,     executed, at_once, keeps),
      Row<List, ListReply>            (12, "list",           read,      none,     at_once, reads),
      Row<Touch, EmptyReply>          (13, "touch",          write,     executed, at_once, keeps),
      Row<CancelTake, CancelTakeReply>(14, "cancel_take",    write,     executed, at_once, frees),
      // Membership of groups.
      Row<Join, FormedReply>          (32, "join",           join,      executed, later,   keeps),
      Row<Leave, EmptyReply>          (33, "leave",          join,      executed, at_once, frees),
      Row<Regroup, FormedReply>       (34, "regroup",        join,      executed, later,   keeps),
      Row<Members, MembersReply>      (35, "members",        join,      none,     at_once, reads),
      Row<ReportDead, EmptyReply>     (36, "report_dead",    supervise, executed, at_once, frees),
      Row<CancelRegroup, EmptyReply>  (37, "cancel_regroup", join,      executed, at_once, frees),
      // What the members of a group exchange.
      Row<CollectiveCall, RoundReply> (48, "collective",     join,      executed, later,   keeps),
      Row<CancelRound, EmptyReply>    (49, "cancel_round",   join,      executed, at_once, frees),
      Row<Send, NumberReply>          (50, "send",           join,      executed, at_once, keeps),
      Row<Receive, ReceiveReply>      (51, "receive",        join,      received, later,   frees),
      Row<ExpireData, NumberReply>    (52, "expire_data",    join,      executed, at_once, frees),
      Row<Recover, RecoverReply>      (53, "recover",        join,      received, later,   reads),
      Row<Interrupt, NumberReply>     (54, "interrupt",      join,      executed, at_once, keeps),
      // What operators ask.
      Row<Status, StatusReply>        (64, "status",         observe,   none,     at_once, reads),
      Row<Sessions, SessionsReply>    (65, "sessions",       observe,   none,     at_once, reads),
      Row<Groups, GroupsReply>        (66, "groups",         observe,   none,     at_once, reads),
      Row<InspectGroup, InspectGroupReply>(67, "inspect_group",observe,   none,     at_once, reads),
      Row<Waiters, WaitersReply>      (68, "waiters",        observe,   none,     at_once, reads),
      Row<NameSpaces, NameSpacesReply>(69, "namespaces",     observe,   none,     at_once, reads),
      Row<DropNameSpace, NumberReply> (70, "drop_namespace", supervise, executed, at_once, frees),
      Row<WhoAmI, StatusReply>        (71, "whoami",         any,       none,     at_once, reads),
      Row<History, HistoryReply>      (72, "history",        observe,   none,     at_once, reads),
      // Queues at keys.
      Row<QueuePush, NumberReply>     (73, "queue_push",     write,     executed, at_once, keeps),
      Row<QueuePop, ValueReply>       (74, "queue_pop",      write,     executed, later,   frees),
      Row<QueueLength, NumberReply>   (75, "queue_length",   read,      none,     at_once, reads),
      // What they change.
      Row<GetSettings, SettingsReply> (80, "get_settings",   observe,   none,     at_once, reads),
      Row<SetSetting, SettingsReply>  (81, "set_setting",    admin,     executed, at_once, frees),
      Row<EndSession, NumberReply>    (82, "end_session",    supervise, executed, at_once, frees),
      Row<Drain, NumberReply>         (83, "drain",          admin,     executed, at_once, frees),
  };
}();
// clang-format on

inline constexpr std::size_t operations_count = std::tuple_size_v<decltype(operation_table)>;

namespace detail {

template <class Table>
struct BodyOf;
template <class... Rows>
struct BodyOf<const std::tuple<Rows...>> {
  using Request = std::variant<typename Rows::Request...>;
};

}  // namespace detail

/// The body of any request. The index of an operation is that of its row.
using RequestBody = detail::BodyOf<decltype(operation_table)>::Request;

/// The facts, by the indices of the rows.
inline constexpr auto operation_facts = std::apply(
    [](const auto&... rows) {
      return std::array<OperationFacts, operations_count>{static_cast<OperationFacts>(rows)...};
    },
    operation_table);

namespace detail {

inline constexpr std::size_t numbers_end =
    static_cast<std::size_t>(operation_facts.back().number) + 1;
using Index = std::uint8_t;
inline constexpr Index no_index = 0xff;
static_assert(operations_count < no_index);

inline constexpr auto operation_indices = [] {
  std::array<Index, numbers_end> indices{};
  indices.fill(no_index);
  for (std::size_t index = 0; index < operations_count; ++index) {
    indices[static_cast<std::size_t>(operation_facts[index].number)] = static_cast<Index>(index);
  }
  return indices;
}();

consteval bool numbers_rise() {
  for (std::size_t index = 1; index < operations_count; ++index) {
    if (operation_facts[index].number <= operation_facts[index - 1].number) return false;
  }
  return operation_facts[0].number > Operation{};
}

consteval bool names_differ() {
  for (std::size_t index = 0; index < operations_count; ++index) {
    if (operation_facts[index].name.empty()) return false;
    for (std::size_t other = 0; other < index; ++other) {
      if (operation_facts[index].name == operation_facts[other].name) return false;
    }
  }
  return true;
}

template <class Body>
consteval std::size_t index_of() {
  std::size_t found = operations_count;
  std::size_t count = 0;
  std::size_t index = 0;
  const auto look_at = [&]<class Request, class Reply>(const Row<Request, Reply>&) {
    if (std::is_same_v<Request, Body>) {
      found = index;
      ++count;
    }
    ++index;
  };
  std::apply([&](const auto&... rows) { (look_at(rows), ...); }, operation_table);
  return count == 1 ? found : operations_count;
}

template <class Body>
concept HasOneRow = index_of<Body>()
< operations_count;

}  // namespace detail

static_assert(detail::numbers_rise(), "numbers rise from row to row, from 1 on");
static_assert(detail::names_differ(), "every operation has a name of its own");

/// Whether `holds` is true of the body type of every operation. `holds` is called with a
/// `std::type_identity` of it.
template <class Predicate>
consteval bool every_request(Predicate holds) {
  return std::apply(
      [&]<class... Requests, class... Replies>(const Row<Requests, Replies>&...) {
        return (holds(std::type_identity<Requests>()) && ...);
      },
      operation_table);
}

static_assert(every_request([]<class Body>(std::type_identity<Body>) {
                return detail::HasOneRow<Body>;
              }),
              "no two operations have the same body type");

/// The index of the operation with this number in a frame; none if there is no such operation.
constexpr std::optional<std::size_t> find_operation(std::uint16_t number) {
  if (number >= detail::numbers_end) return std::nullopt;
  const detail::Index index = detail::operation_indices[number];
  if (index == detail::no_index) return std::nullopt;
  return index;
}

/// The facts of an operation of the table.
constexpr const OperationFacts& facts_of(Operation operation) {
  return operation_facts[detail::operation_indices[static_cast<std::size_t>(operation)]];
}

/// The operation's name; empty for a number that is none.
constexpr std::string_view name_of(Operation operation) {
  const auto index = find_operation(static_cast<std::uint16_t>(operation));
  return index ? operation_facts[*index].name : std::string_view();
}

/// Whether a second execution could differ from the first, so that there must be none.
constexpr bool changes_state(Operation operation) {
  return facts_of(operation).change == StateChange::executed;
}

/// Whether the server may keep the reply, and the client acknowledges it.
constexpr bool is_kept(Operation operation) {
  return facts_of(operation).change != StateChange::none;
}

/// Whether the request may wait on the server.
constexpr bool may_wait(Operation operation) {
  return facts_of(operation).answered == Answered::later;
}

/// The operation that has the body `Body`.
template <detail::HasOneRow Body>
inline constexpr Operation operation = operation_facts[detail::index_of<Body>()].number;

/// The body of the reply to `Body`.
template <detail::HasOneRow Body>
using ReplyTo =
    typename std::tuple_element_t<detail::index_of<Body>(), decltype(operation_table)>::Reply;

constexpr Operation operation_of(const RequestBody& body) {
  return operation_facts[body.index()].number;
}

}  // namespace muster::wire
