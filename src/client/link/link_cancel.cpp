// What `cancel` has marked ends on the I/O thread: most calls at once, rounds and regroups when the
// server has decided them, or has not within `cancel_patience`.

#include <algorithm>
#include <variant>
#include <vector>

#include "base/monotonic_now.h"
#include "client/link/link.h"

namespace muster::client {

using base::monotonic_now;

void Link::cancel_marked() {
  const std::lock_guard lock(mutex_);
  const Instant now = monotonic_now();
  std::vector<CallId> ending;
  std::vector<wire::RequestBody> cancellations;
  for (auto& [id, pending] : pending_) {
    const Ticket& ticket = pending.ticket;
    const bool is_meant =
        mark_.covers(ticket.serial) || (ticket.mark && ticket.mark->covers(ticket.serial));
    if (pending.is_cancelled || !is_meant) continue;
    pending.is_cancelled = true;
    if (!ticket.cancellation) {
      ending.push_back(id);
      continue;
    }
    std::visit([&](const auto& body) { cancellations.emplace_back(body); }, *ticket.cancellation);
    pending.give_up_at = now + cancel_patience;
    give_up_at_ = std::min(give_up_at_, pending.give_up_at);
  }
  for (const CallId id : ending) protocol_.cancel(id, now);
  for (const auto& body : cancellations) protocol_.submit(body, cancel_patience, now);
}

void Link::give_up_cancelled() {
  const std::lock_guard lock(mutex_);
  armed_for_ = base::far_future;
  const Instant now = monotonic_now();
  if (now < give_up_at_) return;
  give_up_at_ = base::far_future;
  for (auto& [id, pending] : pending_) {
    if (pending.give_up_at <= now) {
      pending.give_up_at = base::far_future;
      protocol_.cancel(id, now);
    } else {
      give_up_at_ = std::min(give_up_at_, pending.give_up_at);
    }
  }
}

}  // namespace muster::client
