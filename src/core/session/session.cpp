#include "core/session/session.h"

#include <utility>

#include "core/session/failure.h"

namespace muster::core {

Parked::Parked(Session& its_session, std::uint64_t its_request_id, wire::Operation its_operation)
    : session(its_session),
      request_id(its_request_id),
      operation(its_operation),
      timer(TimerKind::parked, this) {
  session.account.quota.charge_always(parked_bytes);
}

Parked::~Parked() { session.account.quota.release(parked_bytes); }

Session::Session(std::uint64_t its_id, NameSpace& its_name_space, Account& its_account)
    : id(its_id), name_space(its_name_space), account(its_account) {}

Session::~Session() = default;

std::string who_is(const Session& session) {
  std::string who = describe(session.process);
  if (session.grant != nullptr) who += " as " + to_string(session.grant->identity);
  return who;
}

void Session::set_grant(std::shared_ptr<const auth::Grant> its_grant) {
  grant = std::move(its_grant);
  rights = auth::rights_of(role);
  if (grant == nullptr) return;
  rights = rights & grant->rights;
  account.unit.set_limits(grant->limits);
}

}  // namespace muster::core
