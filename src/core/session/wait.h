#pragma once

#include <string>

namespace muster::core {

struct Parked;

/// What a parked request waits at: keys, a group, a round, a stream. The request owns it.
///
/// Life: made when the request is parked -> the room answers the request, which destroys both; or
/// the deadline passes, the client gives up, or the session ends. The destructor leaves every list
/// that the wait stands in, so a wait can go at any time.
class Wait {
 public:
  explicit Wait(Parked& its_parked) : parked(its_parked) {}
  virtual ~Wait() = default;
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  /// The deadline has passed. Answers the request, which destroys the wait.
  virtual void timed_out() = 0;
  /// The client has given up. Nobody is answered; the wait is destroyed here or by the caller, who
  /// drops the request next.
  virtual void abandoned() {}
  /// The session stands again on another connection.
  virtual void resumed() {}
  /// Whether its outcome is known, and the client is yet to be told.
  virtual bool is_decided() const { return false; }
  /// For operators: the missing keys, or the group and what in it.
  virtual std::string target() const = 0;

  Parked& parked;
};

}  // namespace muster::core
