#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rank_ranges.h"
#include "core/groups/history/history.h"
#include "core/memory/chain.h"
#include "core/memory/held_bytes.h"
#include "core/session/engine_services.h"
#include "core/session/session.h"
#include "muster/error.h"
#include "wire/error_body.h"

// Who is in an epoch, and what errors say about them. Rounds and streams know this much of their
// epoch and no more.

namespace muster::core {

struct Epoch;
struct Object;
struct Roster;
struct Stream;
struct StreamWait;

enum class Standing : std::uint8_t {
  live,
  lost,  ///< its session died, or another process took its rank
  left,
  fenced,  ///< the others went on without it, or another process took its rank
  moved,   ///< it is a member of the next epoch
};

/// An error that many are told of: encoded once.
struct Failure {
  ErrorCode code = ErrorCode::internal;
  Payload body;  ///< null: none

  explicit operator bool() const { return body != nullptr; }
};

/// The interruptions of the epoch by one member.
struct MemberInterruptions {
  std::uint64_t count = 0;
  std::uint64_t failed_round = 0;  ///< the round that the last one has failed
  Failure last;
};

/// The streams from and to one member.
struct MemberStreams {
  Chain<Object> sent;                        ///< objects of its streams, oldest first
  Chain<Stream> incoming;                    ///< streams to it that have something in them
  std::uint64_t incoming_objects_count = 0;  ///< of them, while it may receive them
  Chain<StreamWait> awaiting;                ///< receivers that wait for its objects
  /// When its streams ended: a number in the order in which members left; 0: with all others.
  std::uint32_t ended = 0;
  std::uint32_t interrupted = 0;  ///< in the same order; 0: they were not
};

/// Whether a member's process can still take part: it has a handle, or asks for one. A member of
/// which neither is true leaves after the grace, unless its session joins again before.
///
/// Life: an answer to a join is on its way (a claim) -> acknowledged: there is a handle; or
/// abandoned, without another claim: `end` is armed -> the session joins again, which is a claim,
/// or the member leaves.
struct MemberHandle {
  explicit MemberHandle(Member& member) : end(TimerKind::member, &member) {}

  /// Whose handle the process has: of this epoch, or of one before it, which can still leave this
  /// one and ask for its handle by another regroup(); 0: none.
  std::uint64_t epoch = 0;
  std::uint32_t claims = 0;  ///< joins that wait, and answers to joins that are not acknowledged
  Timer end;
};

/// A session's part in an epoch. Stays until the epoch goes, for the errors that name it.
struct Member {
  Member(Epoch& its_epoch, Roster& its_roster, std::uint32_t its_rank, Session& its_session);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  bool live() const { return standing == Standing::live; }
  /// The session has nothing to do with this epoch any more.
  void unlink();
  /// Its process has the handle of that epoch; see MemberHandle. 0: it has it no more.
  void hold(std::uint64_t handle_epoch);
  void add_claim();
  void drop_claim();
  /// Neither has it a handle, nor does it ask for one.
  bool is_unheld() const { return live() && handle.epoch == 0 && handle.claims == 0; }
  /// Lets it leave after the grace, if its process can take no part in it.
  void look_for_handle();

  Epoch& epoch;
  Roster& roster;
  std::uint32_t rank;
  Standing standing = Standing::live;
  Session* session;  ///< null: the session does not refer to it any more
  ProcessInfo process;
  Payload info;
  HeldBytes record;
  Duration silence_at_end{};             ///< when it ceased to be live
  LossCause cause = LossCause::none;     ///< of its loss
  std::uint64_t next_round = 1;          ///< number of its next collective
  std::uint64_t acknowledged_round = 0;  ///< it has the outcomes up to this one
  MemberInterruptions interruptions;
  std::uint64_t next_attempt = 1;   ///< number of its next regroup
  std::uint64_t join_attempts = 0;  ///< those of them that were joins: clients do not count
  std::optional<std::uint32_t> previous_rank;  ///< in the epoch that has regrouped into this one
  std::uint64_t from_attempt = 0;              ///< the client's regroup that led here; 0: none did
  MemberStreams streams;
  MemberHandle handle{*this};
};

Failure make_failure(Quota& quota, const Error& error);

/// The failure as an answer; `round` is told where it is not the failure's own (0: it is).
Answer answer_of_failure(const Failure& failure, Duration elapsed, std::uint64_t round = 0);

using base::add_to;

/// Ranks must be added in ascending order: all go into the ranges, the first 64 in full.
template <class MakeReport>
void add_rank(Error& error, std::uint32_t rank, MakeReport&& make_report) {
  add_to(error.rank_ranges, rank);
  if (error.ranks.size() < wire::ranks_in_full_max) error.ranks.push_back(make_report());
}

/// As above, and always in full: in the place of the last one, if need be.
void add_rank_in_full(Error& error, RankReport report);

/// As errors tell of a rank whose session is there.
RankReport report_of(EngineServices& services, std::uint32_t rank, const Session& session);
RankReport report_of(EngineServices& services, const Member& member);
/// Of a rank that nobody has joined as.
RankReport report_of_absent(std::uint32_t rank);

struct Roster {
  Roster(EngineServices& services, Recorder its_recorder, std::string its_group,
         std::uint64_t its_epoch);

  /// The member that `session` is, of any standing but `moved` and `left`; null: none.
  Member* find(const Session& session);
  Member* at(std::uint64_t rank) { return rank < members.size() ? &members[rank] : nullptr; }
  std::uint32_t world_size() const { return static_cast<std::uint32_t>(members.size()); }
  bool broken() const { return !lost.empty(); }
  bool whole() const { return lost.empty() && left.empty(); }
  /// Whether the session may know what is in the group: it is a live member, of whichever tenant,
  /// or may see what belongs to the group's.
  bool is_known_to(const Session& session);

  /// An error of this epoch, decided by the server.
  Error error(ErrorCode code, std::string detail) const;
  /// Adds a member as a rank at fault; in ascending order.
  void blame(Error& error, const Member& member) const;
  /// Why every call fails once a member is lost: rank_lost, naming all who are.
  const Failure& loss(Quota& quota);
  Error loss_error() const;
  /// rank_left, naming all who have left.
  Error leave_error() const;
  /// rank_left, naming the one.
  Error leave_error(const Member& member) const;

  /// After the last member was added.
  void index_sessions();

  /// What happens to the epoch is kept for those who ask later.
  void record(GroupEventKind what, const Error* why = nullptr,
              const Member* member = nullptr) const;

  EngineServices& services;
  const Recorder recorder;
  std::string group;
  std::string tenant;  ///< whom the group belongs to
  std::uint64_t epoch;
  Duration data_expiration{};
  Instant broken_at{};  ///< when the first was lost
  std::uint32_t hosting_rank = 0;
  std::deque<Member> members;  ///< by rank; they never move
  std::uint32_t live_count = 0;
  std::uint32_t reference_count = 0;  ///< members that a session refers to
  std::vector<std::uint32_t> lost;    ///< ranks, in the order of their loss
  std::vector<std::uint32_t> left;
  Failure fenced;  ///< for members that are `fenced`

 private:
  std::vector<std::pair<std::uint64_t, std::uint32_t>> rank_of_session_;  // sorted by session id
  Failure loss_;
  std::size_t lost_in_loss_ = 0;  // how many of `lost` it names
};

/// "group 'a' epoch 3"
std::string text_of(const Roster& roster);

}  // namespace muster::core
