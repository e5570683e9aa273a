#pragma once

#include <cstdint>
#include <string>

#include "client/protocol/connection_state.h"
#include "client/protocol/effects.h"
#include "client/protocol/events.h"
#include "client/protocol/incoming.h"
#include "client/protocol/lease.h"
#include "client/protocol/liveness.h"
#include "client/protocol/requests.h"
#include "client/protocol/session.h"
#include "wire/frame.h"
#include "wire/request.h"

// The client's side of one session, without sockets, threads and clock: what the rim
// (src/client/link/link.h, or a test, or a simulator) sees goes in with its time, effects come out.
//
// Life cycle: connecting -> connected <-> disconnected (reconnecting by itself) -> ended
// (session expired, fenced, server restarted: every call fails until `open`) or closed.
// While the server was silent for 0.8 of the session timeout calls end with `suspended`.

namespace muster::client::protocol {

/// Who has which data: ConnectionState the attempts to connect, Session what both sides know of
/// each other, Requests the calls, Incoming the bytes that came, Liveness and Lease the time. This
/// ties them together: what each input means for all of them. protocol_frames.cpp has what the
/// server says, protocol.cpp the rest.
class Protocol {
 public:
  explicit Protocol(Options options);
  /// What is left of one in whose midst an exception was thrown: its options, and which ids it gave
  /// to calls. Nothing else of it counts, and none of its calls is completed. The session is over:
  /// every call fails with `why` until `open`.
  Protocol(const Protocol& broken, Error why);
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;

  /// Begins to connect; after the end of a session, for a new one. Nothing while one stands or is
  /// sought, or after `close`.
  void open(Instant now);

  /// What the rim saw. Time never runs backwards from call to call.
  void apply(const Input& input, Instant now);

  /// Sends a request, now or when the session stands; exactly one Complete follows, with
  /// `user_data`, at the latest at `now + timeout + slack`.
  CallId submit(const wire::RequestBody& body, Duration timeout, Instant now,
                std::uint64_t user_data = 0, Receipt receipt = Receipt::at_once);

  /// Sends a request that ends with its answer or the session, and with nothing else: it has no
  /// deadline, and waits also while the session is suspended. One that never waits at the server.
  CallId submit_lasting(const wire::RequestBody& body, Instant now, std::uint64_t user_data = 0);

  /// As `Requests::conclude`; what waited for it is sent.
  void conclude(CallId call, Verdict verdict, Instant now);

  /// Ends a pending call with `cancelled`; its late answer is dropped, an object in it stays.
  /// A collective's call cannot be taken back: the rim sends cancel_round instead.
  void cancel(CallId call, Instant now);

  /// Ends the session in order: goodbye goes out, every pending call ends with `closed`.
  void close(Instant now);

  Instant next_deadline() const;

  Effects& effects() { return effects_; }
  const Session& session() const { return session_; }
  Requests& requests() { return requests_; }
  /// The session stands, on a connection that is not doubted.
  bool established() const { return connection_.established(); }

 private:
  // What the rim saw.
  void on(const Connected& input, Instant now);
  void on(const ConnectFailed& input, Instant now);
  void on(const Received& input, Instant now);
  void on(const Disconnected& input, Instant now);
  void on(const NewKey& input, Instant now);

  // The session.
  bool accept(wire::ServerHello hello, Instant now);
  void refuse(const wire::ServerHello& hello, Instant now);
  void meet_stranger(Error error, Instant now);
  void fail_attempt(AttemptOutcome attempt, Error why, Instant now);
  void lose_connection(Error why, Instant now);
  void end_session(Error why, Instant now);
  void forget_connection();

  // What the server says.
  bool read_hello(Instant now);
  void read_frames(Instant now);
  Result<void> read_frame(const wire::Frame& frame, Instant now);
  Result<void> read_reply(const wire::Frame& frame, Instant now);
  Result<void> read_event(const wire::Frame& frame, Instant now);
  void read_goodbye(const wire::Frame& frame, Instant now);
  void break_off(Error error, Instant now);

  // Time.
  void settle_admission(Instant now);
  void do_what_is_due(Instant now);

  Effects effects_;
  ConnectionState connection_;
  Lease lease_;
  Liveness liveness_;
  Session session_;
  Incoming incoming_;
  Requests requests_;
  int broken_off_count_ = 0;  ///< connections, one after the other, without a good reply
};

}  // namespace muster::client::protocol
