#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/fifo.h"
#include "client/protocol/calls.h"
#include "client/protocol/connection_state.h"
#include "client/protocol/effects.h"
#include "client/protocol/lease.h"
#include "client/protocol/receipts.h"
#include "client/protocol/session.h"
#include "wire/request.h"

namespace muster::client::protocol {

/// The calls that are not over, and everything that is sent for them: requests, what is told of
/// their replies, and heartbeats, which carry that too.
class Requests {
 public:
  /// What it sends for, and by; `last_id` is that of the last call before.
  Requests(const Session& session, const ConnectionState& connection, Lease& lease,
           Effects& effects, CallId last_id);

  std::size_t count() const { return calls_.count(); }
  CallId last_id() const { return last_id_; }
  /// Null when it is over.
  Call* find(CallId id) { return calls_.find(id); }
  const Call* find(CallId id) const { return calls_.find(id); }
  /// When a call has to be looked at.
  Instant next_wake() const { return calls_.next_wake(); }

  /// A new call that is to be queued, or ended.
  Call& add(const wire::RequestBody& body, Duration timeout, std::uint64_t user_data, Instant now);
  /// The same, of one without a deadline.
  Call& add_lasting(const wire::RequestBody& body, std::uint64_t user_data, Instant now);
  void queue(Call& call, const wire::RequestBody& body);
  void send_queued(Instant now);
  /// The session stands again: what was sent before and not answered leaves once more.
  void send_again(Instant now);
  void send_heartbeat(Instant now);
  void send_abandons();

  /// Of a call that was answered with a value, and whose receipt is its caller's. Once.
  void conclude(CallId id, Verdict verdict);

  /// The server's answer.
  void answer(Call& call, Result<std::string> reply, Instant now);
  /// Everything sent in frames up to `serial` has arrived.
  void confirm(std::uint64_t serial);
  /// A reply that no call waits for.
  void drop_reply(std::uint64_t id);

  /// These end without an answer. `silence` is how long the server was not heard.
  void end(CallId id, Error error, Instant now);
  void end_all(const Error& error, Instant now);
  /// All but those that last.
  void end_passing(const Error& error, Instant now);
  void end_overdue(Duration silence, Instant now);

  void connection_lost();
  /// There is nobody to be told of replies any more.
  void session_ended();

 private:
  void send(Call& call, Instant now);
  void send_acknowledgements();
  void leave_flight(Call& call);
  bool may_be_held(const Call& call) const;
  void complete(Call& call, Result<std::string> reply, Fate fate, Instant now,
                bool is_held = false);
  bool is_past_end(const Call& call, Instant now) const;
  Error overdue(const Call& call, Duration silence) const;

  const Session& session_;
  const ConnectionState& connection_;
  Lease& lease_;
  Effects& effects_;

  Calls calls_;
  Receipts receipts_;
  wire::Request request_;  ///< that is being sent; for its memory
  std::uint64_t last_id_;
  std::uint64_t last_serial_ = 0;  ///< of the frames sent, on all connections
  /// Requests in flight: the server keeps their replies, and they may not be parked there.
  std::uint32_t in_flight_count_ = 0;
  /// Those of them that were answered, and whose answers the server keeps until `conclude`: joins
  /// and regroups. Not receives, takes and pops: their callers may keep them for long, and what was
  /// taken has a limit of its own.
  std::set<CallId> held_in_flight_;
  /// Those that may be parked, by the serial that carried them: they are, once a later frame is
  /// answered before them.
  base::Fifo<std::pair<std::uint64_t, CallId>> maybe_parked_;
};

}  // namespace muster::client::protocol
