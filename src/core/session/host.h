#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/session/options.h"
#include "core/session/session.h"
#include "muster/log.h"

namespace muster::core {

/// What the engine does for its rooms (table, groups, rounds, streams). The rooms know this and
/// each other's data, never the engine.
class Host {
 public:
  virtual const Options& options() const = 0;
  virtual Quota& quota() = 0;
  virtual TimerWheel& timers() = 0;
  virtual Instant now() const = 0;

  /// A number that was never given before under this incarnation.
  virtual std::uint64_t next_epoch() = 0;

  /// Parks the request: it will be answered later, at the latest at its deadline. Null when the
  /// session has parked too many; the request has been answered `resource_exhausted` then.
  virtual Parked* park(const RequestContext& context) = 0;

  /// Answers a request in hand. Cached until acknowledged when the operation changes something
  /// or `on_acknowledged` is set.
  virtual void answer(const RequestContext& context, Answer&& answer) = 0;
  virtual void fail(const RequestContext& context, Error error) = 0;

  /// Answers a parked request; `parked` is destroyed. Adds elapsed time to an error.
  virtual void answer(Parked& parked, Answer&& answer) = 0;
  virtual void fail(Parked& parked, Error error) = 0;

  /// What the request in hand brings, to be kept: a copy, or all the memory that it came in. Null
  /// when the quota refuses, or the system.
  virtual Payload keep_brought(Quota& quota, std::string_view bytes) = 0;

  /// Tells a session of something, if it is connected.
  virtual void send_event(Session& session, wire::EventKind kind,
                          std::shared_ptr<const std::string> body) = 0;

  /// Ends a session as a loss does; `report_dead` uses it.
  virtual void end_session(Session& session, Error why, LossCause cause) = 0;

  /// Time since the last byte of `session`, not counting what the server itself slept.
  virtual Duration silence(const Session& session) const = 0;

  virtual void log(LogLevel level, std::string line) = 0;

 protected:
  ~Host() = default;
};

}  // namespace muster::core
