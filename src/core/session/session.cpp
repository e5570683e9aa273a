#include "core/session/session.h"

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
    : id(its_id),
      name_space(its_name_space),
      account(its_account),
      expiry(TimerKind::session, this) {}

Session::~Session() = default;

}  // namespace muster::core
