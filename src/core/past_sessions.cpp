#include "core/past_sessions.h"

#include "core/name_space.h"
#include "core/session/failure.h"

namespace muster::core {

void PastSessions::add_blank(const Session& session, Instant deadline, Duration paused) {
  blanks_.add(session.id, Blank{session.token, session.role, session.grant, session.name_space.name,
                                deadline, paused});
}

const PastSessions::Blank* PastSessions::blank(std::uint64_t id, Instant now,
                                               Duration paused) const {
  const Blank* const blank = blanks_.find(id);
  if (blank == nullptr) return nullptr;
  return now < blank->deadline + (paused - blank->paused) ? blank : nullptr;
}

Error PastSessions::why_fenced(const Fenced& fenced) {
  const bool was_ended = fenced.fencing == Fencing::ended;
  Error error = failure(ErrorCode::fenced, was_ended ? "ended by " : "declared dead by ");
  error.detail += fenced.by;
  error.decided_by = fenced.by;
  return error;
}

Error PastSessions::why_over(std::uint64_t id) {
  return failure(ErrorCode::session_expired,
                 "session " + std::to_string(id) + " is over; begin a new one");
}

}  // namespace muster::core
