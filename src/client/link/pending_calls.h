#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/inline_function.h"
#include "base/time.h"
#include "client/cancel_mark.h"
#include "client/link/cancel_requests.h"
#include "client/protocol/protocol.h"

namespace muster::client {

using base::Instant;
using protocol::CallId;

/// How a call ended, as the group's state has to know it.
struct Outcome {
  Result<std::string> reply;
  protocol::Fate fate = protocol::Fate::unsent;
  CallId call = 0;  ///< whose receipt is its caller's; 0: none
};

/// One call on its way to the server.
struct Ticket {
  std::uint64_t serial = 0;          ///< from `CancelRequests`, taken when the public call began
  std::shared_ptr<CancelMark> mark;  ///< of its group; null: none
  protocol::Receipt receipt = protocol::Receipt::at_once;
  /// Of a call that the server has to end: one that is others', too, for all of them; or a take,
  /// since only the server knows whether it had a value. What asks it to.
  std::optional<std::variant<wire::CancelRound, wire::CancelRegroup, wire::CancelTake>>
      cancellation;
  /// See Protocol::submit_lasting; nobody waits for its end.
  bool is_lasting = false;
  /// Both run once, `settle` first, on the I/O thread (or, after `give_up`, on the thread that
  /// did), and never block. May be empty.
  base::InlineFunction<void(const Outcome& outcome), 32> settle;
  base::InlineFunction<void(Outcome&& outcome), 8> done;
};

/// Runs what waits for the end of the call.
void complete(Ticket& ticket, Outcome outcome);

/// The calls whose end nobody was told yet, and those of them that were cancelled: most end at
/// once, takes, rounds and regroups when the server has ended them, or has not within
/// `cancel_patience`. Under the link's lock.
///
/// Each has a slot here while it is pending, which is its word of user data in the protocol. A
/// slot is used again, so whoever comes with one brings the call's id, too.
class PendingCalls {
 public:
  /// How long a cancelled take, round or regroup waits for the server's answer.
  static constexpr Duration cancel_patience{std::chrono::seconds(2)};

  /// Takes the ticket, unless it throws std::bad_alloc.
  std::uint64_t add(Ticket&& ticket);
  /// The protocol has it, as this call.
  void begin(std::uint64_t slot, CallId call) { entries_[slot].call = call; }
  /// Whether it is still there.
  bool has(std::uint64_t slot, CallId call) const {
    return slot < entries_.size() && entries_[slot].call == call;
  }
  /// Whether it is a cancelled take whose value has come.
  bool has_taken(std::uint64_t slot) const { return entries_[slot].taken.has_value(); }
  /// What `add` took.
  Ticket take(std::uint64_t slot);
  /// A call that is over, and how.
  struct Ended {
    Ticket ticket;
    Outcome outcome;
  };
  /// What the end of a request of the protocol's ends. Nothing: it is nobody's, or the value of a
  /// cancelled take, and the server is yet to say whether that was given back.
  std::optional<Ended> completed(protocol::Complete& request, protocol::Protocol& protocol,
                                 Instant now);
  /// The call in the slot is a take that has brought this, and is cancelled now.
  void give_back(std::uint64_t slot, Outcome&& taken, protocol::Protocol& protocol, Instant now);
  /// Of all.
  template <class End>
  void end_all(End end) {
    std::vector<Entry> entries = std::exchange(entries_, {});
    *this = PendingCalls();
    for (Entry& entry : entries) {
      if (entry.call != 0) end(entry.ticket);
    }
  }

  void cancel(CallId call, protocol::Protocol& protocol, Instant now);
  /// All that are meant.
  void cancel(const CancelRequests& requests, protocol::Protocol& protocol, Instant now);
  /// Those that the server has not decided in time.
  void give_up_cancelled(protocol::Protocol& protocol, Instant now);
  Instant next_deadline() const { return give_up_at_; }

 private:
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
  static constexpr std::size_t spare_slots_max = 64;

  struct Entry {
    CallId call = 0;  ///< 0: not begun, or free
    Ticket ticket;
    bool is_cancelled = false;
    Instant give_up_at = base::far_future;
    std::uint64_t next_free = nowhere;
    CallId cancellation = 0;       ///< the request that asks to end a take; 0: none is under way
    std::optional<Outcome> taken;  ///< what a take has brought that was cancelled
  };

  void cancel_in(std::uint64_t slot, protocol::Protocol& protocol, Instant now);
  std::optional<Ended> cancellation_ended(std::uint64_t slot, const protocol::Complete& request,
                                          protocol::Protocol& protocol, Instant now);

  std::vector<Entry> entries_;
  std::uint64_t first_free_ = nowhere;
  std::size_t count_ = 0;
  Instant give_up_at_ = base::far_future;
};

}  // namespace muster::client
