#include "core/session/waiting.h"

#include "core/session/session.h"

namespace muster::core {

std::uint64_t WaitingNames::others_count(const WaitingSessions& own) const {
  return count_ - (own.count_ != 0 ? 1 : 0);
}

std::vector<std::string_view> WaitingNames::others(const WaitingSessions& own,
                                                   std::size_t count_max) {
  std::vector<std::string_view> names;
  for (auto each = listed_.begin(); each != listed_.end() && names.size() < count_max;) {
    WaitingSessions& waiting = *each->second;
    if (waiting.count_ == 0) {
      waiting.is_named_ = false;
      each = listed_.erase(each);
      continue;
    }
    if (&waiting != &own) names.push_back(each->first);
    ++each;
  }
  return names;
}

void WaitingSessions::leave() {
  if (is_named_) names_.listed_.erase(name_);
  is_named_ = false;
}

bool WaitingSessions::is_listed(const Session& session) {
  return session.requests.is_listed_as_waiting;
}

void WaitingSessions::list(Session& session) {
  if (!is_named_) {
    names_.listed_.emplace(name_, this);
    is_named_ = true;
  }
  if (session.requests.is_listed_as_waiting) return;
  listed_.emplace_hint(listed_.end(), session.id, &session);
  session.requests.is_listed_as_waiting = true;
}

void WaitingSessions::forget(Session& session) {
  if (session.requests.is_listed_as_waiting) listed_.erase(session.id);
  session.requests.is_listed_as_waiting = false;
}

const Session* WaitingSessions::after(std::uint64_t id) {
  for (auto next = listed_.upper_bound(id); next != listed_.end();) {
    Session& session = *next->second;
    if (!session.requests.parked.empty()) return &session;
    session.requests.is_listed_as_waiting = false;
    next = listed_.erase(next);
  }
  return nullptr;
}

}  // namespace muster::core
