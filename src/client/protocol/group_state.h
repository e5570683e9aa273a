#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/protocol/fate.h"
#include "muster/error.h"
#include "muster/result.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace muster::client::protocol {

/// What a group's handle knows of its own calls: counters, what is pending, what is in doubt,
/// and why the epoch is over. Pure; the rim holds its lock around every call.
///
/// A call takes its number when it is made. Its end moves the counter: an outcome decided by the
/// server counts a round, also a failure, which names its round then; a call that was sent and got
/// no answer is in doubt; one that was turned away, or never sent, gives its number back.
///
/// Each `end_` takes the error of the call (null: success) and its Complete's fate; a call that the
/// rim gave up before `submit` was unsent.
class GroupState {
 public:
  explicit GroupState(wire::FormedReply formed);

  /// The number of the next collective.
  /// errors  busy (one is pending), outcome_unknown (one is in doubt: `recover` first; or a
  ///         regroup or an interruption is: call it again first), or why the epoch is over
  Result<std::uint64_t> begin_round();
  void end_round(const Error* error, Fate fate);

  /// The sequence of the next object to a peer. Several may be on their way; when one fails, those
  /// behind it fail with `sequence_gap`, and all give their numbers back.
  /// errors  busy (one has failed and others are still on their way), outcome_unknown (one is in
  ///         doubt), or why the epoch is over
  Result<std::uint64_t> begin_send(std::uint32_t destination, std::uint64_t tag);
  void end_send(std::uint32_t destination, std::uint64_t tag, const Error* error, Fate fate);

  /// The sequence of the next object from a peer. Success and `expired` move it on; nothing else
  /// does, since the server keeps an object until its receipt is acknowledged.
  /// errors  busy (one is pending), or why the epoch is over
  Result<std::uint64_t> begin_receive(std::uint32_t source, std::uint64_t tag);
  void end_receive(std::uint32_t source, std::uint64_t tag, const Error* error);

  /// What the next call on a stream would be given.
  std::uint64_t next_to_send(std::uint32_t destination, std::uint64_t tag) const;
  std::uint64_t next_to_receive(std::uint32_t source, std::uint64_t tag) const;

  /// The number of the next attempt; allowed when the epoch is over because a rank was lost or
  /// left. An attempt in doubt keeps its number: the next call asks for its outcome.
  Result<std::uint64_t> begin_regroup();
  void end_regroup(const Error* error, Fate fate);

  /// The number of the next interruption. One in doubt keeps its number: the next call asks for its
  /// outcome.
  /// errors  busy (one is pending), or why the epoch is over
  Result<std::uint64_t> begin_interruption();
  /// `round`: that has failed, if it has succeeded. This rank's next collective comes behind it.
  void end_interruption(std::uint64_t round, const Error* error, Fate fate);

  /// What `recover` has to ask, and what its answer means.
  wire::Recover doubts() const;
  bool in_doubt() const;
  void resolve(const wire::Recover& asked, const wire::RecoverReply& answer);

  /// The epoch is over for this handle; every later call gets `why`. The first one stays. Not for
  /// a lost rank: rounds that were decided before keep their outcome, so the server answers.
  void end(Error why);
  const Error* ended() const;

  const wire::FormedReply& formed() const { return formed_; }
  std::uint64_t pending_round() const;  ///< 0: none
  std::uint64_t rounds() const { return next_round_ - 1; }
  std::uint64_t objects_sent() const { return objects_sent_; }
  std::uint64_t objects_received() const { return objects_received_; }

 private:
  struct Outgoing {
    std::uint64_t next = 0;   ///< to be given
    std::uint64_t taken = 0;  ///< below it all are with the server
    std::uint32_t pending = 0;
    bool failed = false;  ///< give back what is above `taken` when none is pending
    bool in_doubt = false;
  };
  struct Incoming {
    std::uint64_t next = 0;
    bool pending = false;
  };
  void pass_interrupted();

  using Peer = std::pair<std::uint32_t, std::uint64_t>;  // rank, tag

  wire::FormedReply formed_;
  std::uint64_t next_round_ = 1;
  bool round_pending_ = false;
  bool round_in_doubt_ = false;
  std::uint64_t next_attempt_ = 1;
  bool regroup_pending_ = false;
  bool regroup_in_doubt_ = false;
  std::uint64_t next_interruption_ = 1;
  bool interruption_pending_ = false;
  bool interruption_in_doubt_ = false;
  std::uint64_t interrupted_round_ = 0;  // the last one
  std::map<Peer, Outgoing> outgoing_;
  std::map<Peer, Incoming> incoming_;
  std::uint64_t objects_sent_ = 0;
  std::uint64_t objects_received_ = 0;
  std::optional<Error> ended_;
};

}  // namespace muster::client::protocol
