#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/session/failure.h"
#include "core/sessions.h"
#include "wire/operation_table.h"

// What a session may changes: with another version of the credentials, or because its client has
// proved itself otherwise when it came back. What it waits for without having the right any more
// fails at once, and who may not take part in groups any more is lost to them.

namespace muster::core {
namespace {

constexpr const char* right_is_gone = "its right was removed while it waited";

bool allows(const Session& session, const auth::Grant& grant) {
  return grant.namespaces.allows(session.name_space.name) &&
         !(grant.rights & auth::rights_of(session.role)).is_empty();
}

/// Of the requests that wait, those for which it has no right now; in their order.
std::vector<std::uint64_t> denied_of(const Session& session) {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, parked] : session.requests.parked) {
    if (!session.rights.has(wire::facts_of(parked.operation).right)) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

void change_grant(EngineServices& services, Session& session,
                  std::shared_ptr<const auth::Grant> grant) {
  const auth::Rights before = session.rights;
  session.set_grant(std::move(grant));
  if ((before & session.rights) == before) return;
  for (const std::uint64_t id : denied_of(session)) {
    const auto parked = session.requests.parked.find(id);
    if (parked == session.requests.parked.end()) continue;  // it went with one before it
    services.fail(parked->second, failure(ErrorCode::permission_denied, right_is_gone));
  }
  if (!session.rights.has(wire::Right::join)) session.name_space.groups.right_removed(session);
}

/// Many may have one grant, and all are looked at: this is rare.
void Sessions::regrant(const Regrant& event) {
  std::map<const auth::Grant*, const Regrant::Grant*> newer_of;
  for (const auto& [older, newer] : event.grants) {
    if (older != nullptr) newer_of.emplace(older.get(), &newer);
  }
  std::vector<std::pair<std::uint64_t, const Regrant::Grant*>> concerned;
  for (const auto& [id, session] : sessions_) {
    const auto found = newer_of.find(session->grant.get());
    if (found != newer_of.end()) concerned.emplace_back(id, found->second);
  }
  services_.effects().spend(concerned.size());
  std::sort(concerned.begin(), concerned.end());
  for (const auto& [id, newer] : concerned) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) continue;
    Session& session = *found->second;
    if (*newer != nullptr && allows(session, **newer)) {
      change_grant(services_, session, *newer);
      continue;
    }
    services_.effects().log(LogLevel::warning,
                            "session " + std::to_string(id) + " of " + describe(session.process) +
                                " is lost: the credential of " +
                                to_string(session.grant->identity) + " was removed",
                            session.account.unit.name);
    end(session, failure(ErrorCode::permission_denied, "its credential was removed"),
        LossCause::revoked);
  }
}

}  // namespace muster::core
