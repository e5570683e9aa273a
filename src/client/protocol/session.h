#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/time.h"
#include "client/protocol/connection_state.h"
#include "client/protocol/events.h"
#include "client/protocol/lease.h"
#include "client/protocol/liveness.h"
#include "wire/hello.h"

namespace muster::client::protocol {

/// Whether calls are let in at the moment.
enum class Admission : std::uint8_t {
  open,
  suspended,    ///< nothing was answered for most of the session timeout; ends by itself
  unavailable,  ///< the server has been dead for too long; ends by itself
  over,         ///< until it is opened again
  closed,
};

/// A session, over all its connections: who we are to the server, what it has said of itself, and
/// why calls fail while they do.
class Session {
 public:
  explicit Session(Options options);
  /// What is left of one that cannot be trusted any more: its options. It is over.
  Session(const Session& broken, Error why);

  const Options& options() const { return options_; }
  /// Known once the server has accepted a session.
  const wire::ServerHello& server() const { return server_; }
  /// What the server's limits make of frames, computed once.
  struct FrameLimits {
    std::uint32_t reply_bytes_max = 0;
    std::uint64_t request_bytes_max = 0;
  };
  const FrameLimits& frame_limits() const { return frame_limits_; }
  bool exists() const { return exists_; }
  Admission admission() const { return admission_; }
  /// Why every call fails at the moment, if it does.
  const Error* failure() const { return admission_ == Admission::open ? nullptr : &failure_; }
  /// What the last attempt or connection that failed came to.
  const Error& last_trouble() const { return last_trouble_; }

  void open();
  /// The server takes connections.
  void connected();
  /// TLS has refused the key or the server. Returns whether it did so before, too: bytes that were
  /// damaged on their way look the same, but rarely twice.
  bool refused_again() { return std::exchange(was_refused_, true); }
  void attempt_failed(Error why) { last_trouble_ = std::move(why); }
  void connection_lost(Error why, Instant now);
  void server_parted(std::string parting) { parting_ = std::move(parting); }
  void accept(wire::ServerHello hello);
  void end(Error why);
  void close();

  /// What is due now. A session that is over or closed stays so.
  Admission due_admission(const ConnectionState& connection, const Lease& lease, Instant now) const;
  void admit() { admission_ = Admission::open; }
  void admit_no_more(Admission due, Error why);
  /// When that changes, unless something happens.
  Instant next_deadline(const ConnectionState& connection, const Lease& lease) const;

  Error error_of(ErrorCode code, std::string detail) const;
  /// Of a hello that says no.
  Error refusal(const wire::ServerHello& hello) const;
  Error unreachable(Duration silence) const;
  Error suspension(const Lease& lease, const Liveness& liveness, Instant now) const;
  /// Names the process that embeds the server, if one does.
  void blame_host(Error& error, LossCause cause, Duration silence) const;

 private:
  void forget_identity();
  bool has_host() const;
  Instant suspends_at(const Lease& lease) const;
  Instant gives_up_at() const;

  Options options_;
  wire::ServerHello server_;
  FrameLimits frame_limits_;
  bool exists_ = false;
  Admission admission_ = Admission::open;
  Error failure_;
  std::string parting_;  ///< the server's goodbye, until it is back
  Error last_trouble_;
  bool was_refused_ = false;  ///< by TLS, since it was opened
  Instant lost_{};            ///< the connection
};

}  // namespace muster::client::protocol
