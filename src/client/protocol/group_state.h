#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/error.h"
#include "muster/result.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace muster::client::protocol {

/// What a group's handle knows of its own calls: counters, what is pending, what is in doubt,
/// and why the epoch is over. Pure; the rim holds its lock around every call.
///
/// A call takes its number when it is made. Its end moves the counter: an outcome decided by the
/// server (also a failure) counts a round, `outcome_unknown` and `suspended` put it in doubt, and
/// everything that was refused before it counted gives the number back.
class GroupState {
 public:
  explicit GroupState(wire::FormedReply formed);

  /// The number of the next collective.
  /// errors  busy (one is pending), outcome_unknown (one is in doubt: `recover` first),
  ///         or why the epoch is over
  Result<std::uint64_t> begin_round();
  void end_round(const Error* error);

  /// The sequence of the next object to, or from, a peer.
  /// errors  busy, outcome_unknown (a send in doubt), or why the epoch is over
  Result<std::uint64_t> begin_send(std::uint32_t destination, std::uint64_t tag);
  void end_send(std::uint32_t destination, std::uint64_t tag, const Error* error);
  Result<std::uint64_t> begin_receive(std::uint32_t source, std::uint64_t tag);
  void end_receive(std::uint32_t source, std::uint64_t tag, const Error* error);

  Result<std::uint64_t> begin_regroup();
  void end_regroup(const Error* error);

  /// What `recover` has to ask, and what its answer means.
  wire::Recover doubts() const;
  bool in_doubt() const;
  void resolve(const wire::Recover& asked, const wire::RecoverReply& answer);

  /// The epoch is over; every later call gets `why`. The first one stays.
  void end(Error why);
  const Error* ended() const;

  const wire::FormedReply& formed() const { return formed_; }
  std::uint64_t pending_round() const;

 private:
  struct Outgoing {
    std::uint64_t next = 0;
    bool pending = false;
    bool in_doubt = false;
  };
  struct Incoming {
    std::uint64_t next = 0;
    bool pending = false;
  };
  using Peer = std::pair<std::uint32_t, std::uint64_t>;  // rank, tag

  wire::FormedReply formed_;
  std::uint64_t next_round_ = 1;
  bool round_pending_ = false;
  bool round_in_doubt_ = false;
  std::uint64_t next_attempt_ = 1;
  bool regroup_pending_ = false;
  std::map<Peer, Outgoing> outgoing_;
  std::map<Peer, Incoming> incoming_;
  std::optional<Error> ended_;
};

}  // namespace muster::client::protocol
