#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/remembered.h"
#include "core/session/session.h"

namespace muster::core {

/// Why a client cannot come back that lives.
enum class Fencing : std::uint8_t { declared_dead, ended };

/// What is remembered of sessions that are over, for clients that come back to them.
class PastSessions {
 public:
  /// A blank session that ended with its connection: it can be begun anew.
  struct Blank {
    wire::ResumeToken token;
    wire::Role role = wire::Role::client;
    std::shared_ptr<const auth::Grant> grant;
    std::string name_space;
    Instant deadline{};  ///< until which it may come back
    Duration paused{};   ///< the engine's sum of gaps at that time
  };

  /// One that somebody has declared dead, or ended.
  struct Fenced {
    wire::ResumeToken token;
    std::shared_ptr<const auth::Grant> grant;
    std::string by;
    Fencing fencing = Fencing::declared_dead;
  };

  void add_fenced(const Session& session, const std::string& by, Fencing fencing) {
    fenced_.add(session.id, Fenced{session.token, session.grant, by, fencing});
  }
  void add_blank(const Session& session, Instant deadline, Duration paused);
  /// It lives again.
  void forget_blank(std::uint64_t id) { blanks_.forget(id); }

  /// Null: there is none, or not any more.
  const Blank* blank(std::uint64_t id, Instant now, Duration paused) const;
  /// Null: it was not fenced, or that is not known any more.
  const Fenced* fenced(std::uint64_t id) const { return fenced_.find(id); }
  /// Why nobody can resume the session: to its client, and to everybody else.
  static Error why_fenced(const Fenced& fenced);
  static Error why_over(std::uint64_t id);

 private:
  Remembered<std::uint64_t, Fenced, 4096> fenced_;
  Remembered<std::uint64_t, Blank, 4096> blanks_;
};

}  // namespace muster::core
