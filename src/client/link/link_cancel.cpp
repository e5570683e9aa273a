// A cancelled call ends on the I/O thread: most at once, rounds and regroups when the server has
// decided them, or has not within `cancel_patience`. `Link::cancel` may run in a signal handler, so
// it only marks what it means; the handle of one call names it.

#include <algorithm>
#include <new>
#include <utility>
#include <variant>

#include "base/monotonic_now.h"
#include "client/link/link.h"

namespace muster::client {

using base::monotonic_now;

void Link::cancel_marked() {
  const std::lock_guard lock(mutex_);
  const Instant now = monotonic_now();
  for (auto& [id, pending] : pending_) {
    const Ticket& ticket = pending.ticket;
    const bool is_meant =
        mark_.covers(ticket.serial) || (ticket.mark && ticket.mark->covers(ticket.serial));
    if (is_meant) cancel_pending(id, pending, now);
  }
  for (Establishing& waiting : establishing_) {
    if (mark_.covers(waiting.number)) waiting.is_cancelled = true;
  }
}

/// Once.
void Link::cancel_pending(CallId id, Pending& pending, Instant now) {
  if (std::exchange(pending.is_cancelled, true)) return;
  const auto& cancellation = pending.ticket.cancellation;
  if (!cancellation) return protocol_->cancel(id, now);
  std::visit([&](const auto& body) { protocol_->submit(body, cancel_patience, now); },
             *cancellation);
  pending.give_up_at = now + cancel_patience;
  give_up_at_ = std::min(give_up_at_, pending.give_up_at);
}

Call Link::handle_of(CallId call) {
  return {std::shared_ptr<Call::Impl>(shared_from_this(), &submitted_), call};
}

void Link::cancel_submitted(CallId call) noexcept {
  if (is_forked()) return;
  try {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(call);
    if (found == pending_.end()) return;
    cancel_pending(call, found->second, monotonic_now());
  } catch (const std::bad_alloc&) {
    return break_down();
  }
  wake();
}

void Link::cancel_establishing(std::uint64_t number) noexcept {
  if (is_forked()) return;
  {
    const std::lock_guard lock(mutex_);
    for (Establishing& waiting : establishing_) {
      if (waiting.number == number) waiting.is_cancelled = true;
    }
  }
  wake();
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
      protocol_->cancel(id, now);
    } else {
      give_up_at_ = std::min(give_up_at_, pending.give_up_at);
    }
  }
}

}  // namespace muster::client
