#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fifo.h"
#include "client/protocol/calls.h"
#include "client/protocol/events.h"
#include "client/protocol/inbox.h"
#include "client/protocol/lease.h"
#include "client/protocol/letters.h"
#include "client/protocol/link.h"
#include "wire/frame.h"
#include "wire/request.h"

// The client's side of one session, without sockets, threads and clock: what the rim
// (src/client/link/link.h, or a test, or a simulator) sees goes in with its time, effects come out.
//
// Life cycle: connecting -> connected <-> disconnected (reconnecting by itself) -> ended
// (session expired, fenced, server restarted: every call fails until `reopen`) or closed.
// While the server was silent for 0.8 of the session timeout calls end with `suspended`.

namespace muster::client::protocol {

/// Why no call is let in at the moment.
enum class Block : std::uint8_t {
  none,
  suspended,    ///< nothing was answered for most of the session timeout; ends by itself
  unavailable,  ///< the server has been dead for too long; ends by itself
  over,         ///< until `reopen`
  closed,
};

/// protocol_session.cpp has how sessions begin, break and end, protocol_calls.cpp the life of a
/// call, protocol_frames.cpp what the server says, protocol_time.cpp what is due when.
class Protocol {
 public:
  explicit Protocol(Options options);
  /// What is left of one in whose midst an exception was thrown: its options, and which ids it gave
  /// to calls. Nothing else of it counts, and none of its calls is completed. The session is over:
  /// every call fails with `why` until `reopen`.
  Protocol(const Protocol& broken, Error why);

  /// Begins to connect.
  void open(Instant now);

  /// What the rim saw. Time never runs backwards from call to call.
  void apply(const Input& input, Instant now);

  /// Sends a request, now or when the session stands; exactly one Complete follows, at the
  /// latest at `now + timeout + slack`.
  CallId submit(const wire::RequestBody& body, Duration timeout, Instant now);

  /// Ends a pending call with `cancelled`; its late answer is dropped, an object in it stays.
  /// A collective's call cannot be taken back: the rim sends cancel_round instead.
  void cancel(CallId call, Instant now);

  /// Ends the session in order: goodbye goes out, every pending call ends with `closed`.
  void close(Instant now);

  /// After `ended`: forgets the old session and begins a new one.
  void reopen(Instant now);

  Instant next_deadline() const;

  /// The effects since the last call, in order. `spare` is memory for the next ones.
  std::vector<Effect> take_effects(std::vector<Effect> spare = {});
  bool has_effects() const { return !effects_.empty(); }
  /// The effect since the last call, if there is one and it is a Transmit; nothing is taken
  /// otherwise.
  std::optional<Transmit> take_transmit();
  /// Memory for what is transmitted next, such as what was transmitted.
  void give_spare(std::string bytes);

  /// Known after the first Established.
  const wire::ServerHello& server() const { return server_; }
  bool established() const { return link_.phase() == Link::Phase::established; }
  /// Why every call fails at the moment, if it does.
  const Error* failure() const { return block_ == Block::none ? nullptr : &failure_; }
  /// What the last attempt or connection that failed came to.
  const Error& last_trouble() const { return last_trouble_; }
  std::size_t pending_count() const { return calls_.count(); }

 private:
  // What the rim saw.
  void on(const Connected& input, Instant now);
  void on(const ConnectFailed& input, Instant now);
  void on(const Received& input, Instant now);
  void on(const Disconnected& input, Instant now);
  void on(const Advance& input, Instant now);

  // The session.
  void read_hello(Instant now);
  void accept(wire::ServerHello hello, Instant now);
  void refuse(const wire::ServerHello& hello, Instant now);
  void meet_stranger(Error error, Instant now);
  void fail_attempt(Attempt attempt, Error why, Instant now);
  void lose_connection(Error why, Instant now);
  void forget_session();
  void end_session(Error why, Instant now);
  void forget_connection();

  // What the server says.
  void read_frames(Instant now);
  Result<void> read_frame(const wire::Frame& frame, Instant now);
  Result<void> read_part(const wire::Frame& frame);
  Result<void> read_reply(const wire::Frame& frame, Instant now);
  Result<void> read_event(const wire::Frame& frame, Instant now);
  void read_heartbeat_reply(std::uint64_t number);
  void read_goodbye(const wire::Frame& frame, Instant now);
  void read_late_reply(std::uint64_t id);
  void break_off(Error error, Instant now);

  // Calls.
  void send_queued(Instant now);
  void send(Call& call, Instant now);
  void send_again(Instant now);
  void send_abandons();
  void send_acknowledgements();
  void send_heartbeat(Instant now);
  void confirm(std::uint64_t serial);
  void leave_flight(Call& call);
  void complete(Call& call, Result<std::string> reply, Fate fate, Instant now);
  void end_call(CallId id, Error error, Instant now);
  void end_all_calls(const Error& error, Instant now);
  std::string& outgoing();

  // Time.
  void settle_block(Instant now);
  Block due_block(Instant now) const;
  void do_what_is_due(Instant now);
  void end_overdue_calls(Instant now);
  bool is_past_end(const Call& call, Instant now) const;
  Duration heartbeat_interval() const;
  Instant suspends_at() const;
  Instant gives_up_at() const;
  Instant falls_silent_at() const;
  Duration patience() const;
  bool waits_for_restart() const { return !established() && link_.server_is_dead(); }

  // Errors.
  Error error_of(ErrorCode code, std::string detail) const;
  Error unreachable(Instant now) const;
  bool did_not_run(Instant now) const;
  Error suspension(Instant now) const;
  Error overdue(const Call& call, Instant now) const;
  bool has_host() const;
  void blame_host(Error& error, LossCause cause, Instant now) const;

  void log(LogLevel level, std::string line) { emit(Log{level, std::move(line)}); }
  template <class Each>
  void emit(Each effect) {
    effects_.emplace_back(std::in_place_type<Each>, std::move(effect));
  }

  Options options_;
  Link link_;
  Lease lease_;
  Letters letters_;
  Inbox inbox_;
  CallId parts_of_ = 0;  ///< the reply whose first parts have come; 0: none
  std::string parts_;
  Calls calls_;
  std::vector<Effect> effects_;
  /// Memory for the next Transmits: one may be leaving while the next is written.
  std::array<std::string, 3> spare_bytes_;
  wire::Request request_;  ///< that is being sent; for its memory

  wire::ServerHello server_;
  bool has_session_ = false;
  Block block_ = Block::none;
  Error failure_;
  std::string parting_;  ///< the server's goodbye, until it is back
  Error last_trouble_;   ///< why the last attempt failed or the connection was lost
  Instant last_event_{};
  Instant ran_again_{};  ///< after a time without events: it had been stopped, or starved
  Instant heard_{};      ///< last byte
  Instant lost_{};       ///< the connection
  Instant heartbeat_at_{};
  std::uint64_t last_id_ = 0;
  std::uint64_t last_serial_ = 0;  ///< of the frames sent, on all connections
  int broken_off_count_ = 0;       ///< connections, one after the other, without a good reply

  /// Requests in flight: the server keeps their replies, and they may not be parked there.
  std::uint32_t in_flight_count_ = 0;
  /// Those that may be parked, by the serial that carried them: they are, once a later frame is
  /// answered before them.
  base::Fifo<std::pair<std::uint64_t, CallId>> maybe_parked_;
};

}  // namespace muster::client::protocol
