#include "core/past_sessions.h"

#include "core/name_space.h"
#include "core/session/failure.h"

namespace muster::core {

void PastSessions::add_blank(const Session& session, Instant deadline, Duration paused) {
  blanks_.add(session.id,
              Blank{session.token, session.role, session.name_space.name, deadline, paused});
}

const PastSessions::Blank* PastSessions::blank(std::uint64_t id, Instant now,
                                               Duration paused) const {
  const Blank* const blank = blanks_.find(id);
  if (blank == nullptr) return nullptr;
  return now < blank->deadline + (paused - blank->paused) ? blank : nullptr;
}

Error PastSessions::reason(std::uint64_t id) const {
  const std::string* const by = fenced_.find(id);
  if (by == nullptr) {
    return failure(ErrorCode::session_expired,
                   "session " + std::to_string(id) + " is over; begin a new one");
  }
  Error error = failure(ErrorCode::fenced, "declared dead by ");
  error.detail += *by;
  error.decided_by = *by;
  return error;
}

}  // namespace muster::core
