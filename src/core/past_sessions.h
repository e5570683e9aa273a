#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/remembered.h"
#include "core/session/session.h"

namespace muster::core {

/// Why a client cannot come back that lives.
enum class Fencing : std::uint8_t { declared_dead, ended };

/// What is remembered of sessions that are over, for clients that come back to them.
class PastSessions {
 public:
  /// What shows that a client is the one whose session it was.
  struct Past {
    explicit Past(const Session& session) : token(session.token) {
      if (session.grant != nullptr) identity = session.grant->identity;
    }
    /// Null: the server has no credentials.
    const auth::Identity* owner() const { return identity ? &*identity : nullptr; }

    wire::ResumeToken token;
    std::optional<auth::Identity> identity;  ///< a grant would keep all keys of its file in memory
  };

  /// A blank session that ended with its connection: it can be begun anew.
  struct Blank : Past {
    wire::Role role = wire::Role::client;
    std::string name_space;
    Instant deadline{};  ///< until which it may come back
    Duration paused{};   ///< the engine's sum of gaps at that time
  };

  /// One that was declared dead, ended by an operator, or whose credential was removed.
  struct Ended : Past {
    ErrorCode code = ErrorCode::fenced;
    std::string detail;
  };

  /// fencing  of one that ends with `fenced`
  void add_ended(const Session& session, const Error& why, Fencing fencing);
  void add_blank(const Session& session, Instant deadline, Duration paused);
  /// It lives again.
  void forget_blank(std::uint64_t id) { blanks_.forget(id); }

  /// Null: there is none, or not any more.
  const Blank* blank(std::uint64_t id, Instant now, Duration paused) const;
  /// Null: it has ended otherwise, or is forgotten.
  const Ended* ended(std::uint64_t id) const { return ended_.find(id); }
  /// Why the session cannot be resumed: to all but the client of an `Ended` one.
  static Error why_over(std::uint64_t id);

 private:
  /// As many as a server has sessions by default: all of them may be cut off together.
  Remembered<std::uint64_t, Ended, 16384> ended_;
  Remembered<std::uint64_t, Blank, 4096> blanks_;
};

}  // namespace muster::core
