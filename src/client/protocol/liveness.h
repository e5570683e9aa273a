#pragma once

#include "base/time.h"
#include "client/protocol/lease.h"
#include "wire/hello.h"

namespace muster::client::protocol {

/// Whether the two sides run and hear each other: when the server was heard, when the next
/// heartbeat is due, and whether this process got to run.
class Liveness {
 public:
  /// Something happens now.
  void note_event(Instant now);
  /// The connection stands, under these limits.
  void begin(const wire::ServerLimits& limits, Instant now);
  void connection_lost() { is_connected_ = false; }
  void hear(Instant now) { heard_ = now; }
  /// Another connection is tried, since this one is silent.
  void doubt() { ++vain_count_; }
  /// Something that was sent has been answered.
  void prove() { vain_count_ = 0; }

  /// A heartbeat was to be sent, and this process did not get to.
  bool did_not_run(Instant now) const;
  /// It did not, so short a time ago that the server's answers may still be on their way.
  bool has_just_run_again(Instant proven, Instant now) const;

  bool heartbeat_is_due(Instant now) const { return is_connected_ && now >= heartbeat_at_; }
  void await_next_heartbeat(Instant now);

  Duration silence(Instant now) const { return now - heard_; }
  /// When to try another connection: TCP alone may take as long to notice that a broken path has
  /// healed as it was broken.
  Instant falls_silent_at(const Lease& lease) const;
  Instant next_heartbeat() const { return is_connected_ ? heartbeat_at_ : base::far_future; }

 private:
  Duration patience() const;

  bool is_connected_ = false;
  Duration heartbeat_interval_{};
  Duration session_timeout_{};
  Instant last_event_{};
  Instant ran_again_{};  ///< after a time without events: it had been stopped, or starved
  Instant heard_{};      ///< last byte
  Instant heartbeat_at_{};
  int vain_count_ = 0;  ///< connections in a row that were silent
};

}  // namespace muster::client::protocol
