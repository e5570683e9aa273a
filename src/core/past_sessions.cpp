#include "core/past_sessions.h"

#include "core/name_space.h"
#include "core/session/failure.h"

namespace muster::core {

void PastSessions::add_blank(const Session& session, Instant deadline, Duration paused) {
  blanks_.add(session.id,
              Blank{Past(session), session.role, session.name_space.name, deadline, paused});
}

void PastSessions::add_ended(const Session& session, const Error& why, Fencing fencing) {
  Ended ended{Past(session), why.code, {}};
  if (why.code == ErrorCode::fenced) {
    ended.detail = fencing == Fencing::ended ? "ended by " : "declared dead by ";
    ended.detail += why.decided_by;
  } else if (why.code == ErrorCode::permission_denied) {
    ended.detail = why.detail;
  } else {
    return;  // `why_over` is the answer
  }
  ended_.add(session.id, std::move(ended));
}

const PastSessions::Blank* PastSessions::blank(std::uint64_t id, Instant now,
                                               Duration paused) const {
  const Blank* const blank = blanks_.find(id);
  if (blank == nullptr) return nullptr;
  return now < blank->deadline + (paused - blank->paused) ? blank : nullptr;
}

Error PastSessions::why_over(std::uint64_t id) {
  return failure(ErrorCode::session_expired,
                 "session " + std::to_string(id) + " is over; begin a new one");
}

}  // namespace muster::core
