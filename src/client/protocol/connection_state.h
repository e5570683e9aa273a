#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "client/protocol/backoff.h"

namespace muster::client::protocol {

using base::Instant;

/// What an attempt to reach the server came to.
enum class AttemptOutcome : std::uint8_t {
  refused,   ///< nobody listens there
  silent,    ///< nothing came back
  answered,  ///< somebody is there, but will not have us now
};

/// Whether a connection stands, where the attempt to make one is, and when the next one is due.
///
/// A connection that is silent is doubted, and another one sought beside it. If it answers what
/// was sent since, before that one has said hello, it is trusted again; else the new one takes its
/// place.
///
/// For a newer key another one is sought as well, beside the one that stands. That is not doubted
/// and serves on, until the new one takes its place. If that fails it is tried again later.
///
/// The server counts as dead when an attempt was refused, and as alive again, if cut off, when one
/// came to nothing; a server that answers "not now" proves neither.
class ConnectionState {
 public:
  enum class Phase : std::uint8_t {
    idle,     ///< nothing is sought: one stands, or it is not opened, or over
    waiting,  ///< for the next attempt
    connecting,
    greeting,  ///< connected; the server's hello is due
  };

  /// moves  of attempts for a newer key
  ConnectionState(Backoff backoff, Duration hello_timeout, Backoff moves)
      : backoff_(backoff), moves_(moves), hello_timeout_(hello_timeout) {}

  Phase phase() const { return phase_; }
  bool stands() const { return stands_; }
  bool is_doubted() const { return is_doubted_; }
  /// It stands, and nothing speaks against that.
  bool established() const { return stands_ && !is_doubted_; }
  bool is_attempting() const { return phase_ == Phase::connecting || phase_ == Phase::greeting; }
  bool server_is_dead() const { return server_is_dead_; }
  bool waits_for_restart() const { return !stands_ && server_is_dead_; }
  /// When the connecting began or the hello was sent.
  Instant began() const { return began_; }

  Instant opened() const { return opened_; }

  void open(Instant now);
  void connect(Instant now);
  void greet(Instant now);
  void establish();
  /// The attempt is over.
  void fail(AttemptOutcome attempt, Instant now);
  /// The next attempt is due by then.
  void try_by(Instant latest) { retry_at_ = std::min(retry_at_, latest); }
  /// The connection that stands is silent: an attempt is due beside it.
  void doubt(Instant now);
  /// An attempt is due beside the connection that stands, soon. Nothing while that is doubted, or
  /// one is sought already.
  void move(Instant now);
  /// What was sent then is answered on it. Where an attempt beside it has said hello it stays
  /// doubted, until that is answered or the next attempt is: the server may have accepted it, and
  /// closed this one.
  ///
  /// returns  whether an attempt to connect is to be ended
  bool trust(Instant answered);
  /// The connection that stood is over. If none is sought, the next attempt is due, at once if it
  /// had been of use.
  void lose(Instant now);
  void close() { phase_ = Phase::idle, stands_ = is_doubted_ = may_have_moved_ = false; }

  /// The connection is of use.
  void prove() { backoff_.reset(), is_useful_ = true; }
  /// It was worse than none.
  void distrust() { is_useful_ = false; }

  bool attempt_is_overdue(Instant now) const { return is_attempting() && now >= overdue_at_; }
  bool attempt_is_due(Instant now) const { return phase_ == Phase::waiting && now >= retry_at_; }
  Instant next_deadline() const;

 private:
  void seek(Instant now);
  /// An attempt is due later, for a newer key, and not needed but for that.
  bool waits_to_move() const;

  Backoff backoff_;
  Backoff moves_;  ///< of attempts for a newer key
  Duration hello_timeout_;
  Phase phase_ = Phase::idle;
  Instant opened_{};
  bool stands_ = false;
  bool is_doubted_ = false;
  Instant doubted_{};            ///< when the doubt began
  bool may_have_moved_ = false;  ///< to an attempt that has said hello
  bool is_moving_ = false;       ///< what is sought is for a newer key
  Instant retry_at_{};
  Instant began_{};
  Instant overdue_at_{};
  bool server_is_dead_ = false;
  bool is_useful_ = true;
};

}  // namespace muster::client::protocol
