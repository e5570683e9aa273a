#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.h"
#include "client/protocol/fate.h"
#include "muster/error.h"
#include "wire/operation.h"
#include "wire/reply.h"

namespace muster::sim {

class Oracle;
using base::Instant;

/// What a rank calls in a round.
struct RoundCall {
  wire::Collective collective = wire::Collective::barrier;
  std::uint32_t root = 0;
  std::vector<std::string> values;
  friend bool operator==(const RoundCall&, const RoundCall&) = default;
};

/// What epochs, rounds and streams can be, given who called what and who was answered what.
class GroupModel {
 public:
  using Number = std::pair<std::uint64_t, std::uint64_t>;  ///< incarnation, epoch
  struct Place {                                           ///< a member
    Number epoch;
    std::uint32_t rank = 0;
  };
  struct Stream {
    Number epoch;
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
    std::uint64_t tag = 0;
    friend auto operator<=>(const Stream&, const Stream&) = default;
  };

  explicit GroupModel(Oracle& oracle) : oracle_(oracle) {}

  // Epochs.
  void formed(std::uint64_t client, const std::string& group, std::uint64_t incarnation,
              const wire::FormedReply& reply, const std::optional<Place>& before, bool keeps_ranks);
  /// Who joins again without having had an answer may take part in a regroup by that.
  void join_begins(const std::string& group, std::uint64_t client, std::uint32_t rank);
  bool has_asked(const std::string& group, std::uint64_t client) const {
    return askers_.count({group, client}) != 0;
  }
  /// Whether a join of it may still be under way when it is a member, and take part in a regroup.
  bool has_asked_twice(const std::string& group, std::uint64_t client) const {
    return second_askers_.count({group, client}) != 0;
  }
  /// Whether it is, or has been, in an epoch of the group.
  bool was_member(const std::string& group, std::uint64_t client) const {
    return newest_.count({group, client}) != 0 || has_asked_twice(group, client);
  }
  /// As far as is known.
  bool may_have_size(const Number& epoch, std::uint64_t size) const;
  /// Whether the epoch has ranks from `size` on.
  bool has_ranks_beyond(const Number& epoch, std::uint64_t size) const;
  void second_join_begins(const std::string& group, std::uint64_t client) {
    second_askers_.insert({group, client});
  }
  bool somebody_asked_for(const std::string& group, std::uint32_t rank,
                          std::uint64_t not_this) const;
  void regroup_begins(const Number& epoch);
  void leave_begins(const std::string& group, const Number& epoch, std::uint64_t client);
  /// It may be a member without having a handle: that ends by itself.
  void may_leave(const std::string& group, std::uint64_t client) {
    leavers_.insert({group, client});
  }
  void left(const Number& epoch);
  /// Whether the round waits in vain for somebody who had left by then.
  bool is_left(const Number& epoch, std::uint64_t round, Instant when) const;
  /// How many rounds somebody has yet to be told of, so that the server must keep them.
  std::uint64_t unfinished_rounds_count() const;
  void deviates(const Number& epoch);
  bool may_be_over(const Number& epoch) const;
  bool may_mismatch(const Number& epoch) const;
  bool may_have_left(const std::string& group, std::uint64_t client) const {
    return leavers_.count({group, client}) != 0;
  }

  // Rounds.
  void round_begins(const Place& place, std::uint64_t client, std::uint64_t round,
                    const RoundCall& call, Duration timeout);
  void round_done(const Place& place, std::uint64_t round, const wire::RoundReply& reply,
                  Instant asked);
  void round_failed(const Place& place, std::uint64_t round, const Error& error);
  /// The call was refused and does not count.
  void round_refused(const Place& place, std::uint64_t round);
  /// Whether all ranks have called it: then only who leaves a barrier last may wait on.
  bool may_be_done(const Number& epoch, std::uint64_t round) const;
  /// Whether all ranks but this one have passed the barrier by then, and are well.
  bool is_confirmed(const Number& epoch, std::uint64_t round, std::uint64_t client,
                    Instant when) const;
  /// Whether the round is the client's to give: it waits for nobody.
  bool is_source(const Number& epoch, std::uint64_t round, std::uint64_t client) const;
  /// Whether that is what the rank called in the round, or a regroup beside it.
  bool may_have_called(const Number& epoch, std::uint64_t round, std::uint32_t rank,
                       const std::string& called) const;
  void cancel_begins(const Number& epoch, std::uint64_t round);
  void cancel_regroup_begins(const Number& epoch);
  void interruption_begins(const Place& place);
  /// Whether all whom the error names have interrupted the epoch.
  bool may_be_interrupted(const Number& epoch, const Error& error) const;
  /// Round 0: a regroup.
  bool may_be_cancelled(const Number& epoch, std::uint64_t round) const;

  // Streams.
  void send_begins(const Stream& stream, std::uint64_t sequence, const std::string& value);
  void sent(const Stream& stream, std::uint64_t sequence);
  void send_refused(const Stream& stream, std::uint64_t sequence);
  void received(const Stream& stream, std::uint64_t sequence, std::string_view value,
                Instant asked);
  void expired(const Stream& stream, std::uint64_t sequence, Duration expiration);
  /// A source lets its own objects expire. Returns the number of the call.
  std::size_t expire_begins(const Place& place, Duration older_than);
  void expire_ended(const Place& place, std::size_t number);
  bool may_be_expired(const Number& epoch) const { return expiries_.count(epoch) != 0; }
  /// How many objects of the stream are surely with the server.
  std::uint64_t sent_count(const Stream& stream) const;

  /// Whether a call of the round should be over by now: its earliest deadline has long passed.
  bool is_overdue(const Number& epoch, std::uint64_t round) const;
  /// The clients of an epoch, as far as they are known, by rank.
  std::map<std::uint32_t, std::uint64_t> members(const Number& epoch) const;
  std::uint64_t rounds_done_count = 0;
  std::uint64_t epochs_count() const { return epochs_.size(); }

 private:
  struct Called {
    std::uint64_t client = 0;
    RoundCall call;
    std::vector<std::vector<std::string>> older_values;  ///< of calls that may have counted
    Instant begun{};
    Duration timeout{};
  };
  struct Round {
    std::map<std::uint32_t, Called> called;
    std::optional<ErrorCode> outcome;  ///< ErrorCode{}: done
    int decided_by = -1;               ///< the rank whose deadline has passed
    std::map<std::uint32_t, std::vector<std::string>> values;  ///< that ranks were given
    std::map<std::uint32_t, Instant> told;                     ///< the outcome
    bool may_be_cancelled = false;
    bool was_broken = false;  ///< a rank was told that the loss of another ended it
  };
  struct Epoch {
    std::uint32_t size = 0;
    std::map<std::uint32_t, std::uint64_t> clients;
    std::map<std::uint32_t, Place> before;
    std::map<std::uint64_t, Round> rounds;
    bool may_be_over = false;
    bool has_regroups = false;
    bool has_deviation = false;
    bool has_cancels = false;                              ///< of regroups
    std::map<std::uint32_t, std::uint64_t> interruptions;  ///< how many, by rank
    std::optional<Instant> left;                           ///< the first member
  };
  struct Attempt {
    std::string value;
    Instant begun{};
    std::optional<Instant> ended;
    bool is_refused = false;
  };
  struct Expiry {
    std::uint32_t source = 0;
    Duration older_than{};
    Instant begun{};
    std::optional<Instant> ended;  ///< with success
  };
  struct Objects {
    std::map<std::uint64_t, std::vector<Attempt>> attempts;
    std::uint64_t sent_count = 0;
    std::uint64_t next_received = 0;
  };

  void problem(const Number& epoch, const std::string& what);
  void problem(const Place& place, std::uint64_t round, const std::string& what);
  void round_broken(const Place& place, Round& round, std::uint64_t number, const Error& error);
  void outcome(const Place& place, Round& round, std::uint64_t number, ErrorCode code);
  void check_values(const Place& place, const Epoch& epoch, Round& round, std::uint64_t number,
                    const std::vector<std::string>& values);
  bool gave(const Called& called, std::size_t index, const std::string& value) const;
  void check_unconfirmed(const Place& place, const Round& round, std::uint64_t number,
                         const std::vector<RankRange>& unconfirmed, Instant asked);
  bool has_surely_come(const Called& called, Instant when) const;
  void check_timeout(const Place& place, Round& round, std::uint64_t number, const Error& error);

  Oracle& oracle_;
  std::map<Number, Epoch> epochs_;
  using Client = std::pair<std::string, std::uint64_t>;  ///< in a group
  std::map<Client, Number> newest_;
  std::set<Client> leavers_;
  std::set<Client> askers_;   ///< who have ever asked to join
  std::set<Client> joiners_;  ///< who have asked and not been answered yet
  std::set<Client> second_askers_;
  bool has_second_joins_ = false;
  std::map<std::pair<std::string, std::uint32_t>, std::set<std::uint64_t>> asked_for_;
  std::map<Stream, Objects> streams_;
  std::map<Number, std::vector<Expiry>> expiries_;
};

}  // namespace muster::sim
