#pragma once

#include <cstdint>
#include <string>

#include "core/remembered.h"
#include "core/session/session.h"

namespace muster::core {

/// What is remembered of sessions that are over, for clients that come back to them.
class PastSessions {
 public:
  /// A blank session that ended with its connection: it can be begun anew.
  struct Blank {
    wire::ResumeToken token;
    wire::Role role = wire::Role::client;
    std::string name_space;
    Instant deadline{};  ///< until which it may come back
    Duration paused{};   ///< the engine's sum of gaps at that time
  };

  void add_fenced(std::uint64_t id, const std::string& by) { fenced_.add(id, by); }
  void add_blank(const Session& session, Instant deadline, Duration paused);
  /// It lives again.
  void forget_blank(std::uint64_t id) { blanks_.forget(id); }

  /// Null: there is none, or not any more.
  const Blank* blank(std::uint64_t id, Instant now, Duration paused) const;
  /// Why nobody can resume the session.
  Error reason(std::uint64_t id) const;

 private:
  Remembered<std::uint64_t, std::string, 4096> fenced_;  ///< by whom
  Remembered<std::uint64_t, Blank, 4096> blanks_;
};

}  // namespace muster::core
