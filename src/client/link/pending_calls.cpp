#include "client/link/pending_calls.h"

#include <algorithm>

namespace muster::client {
namespace {

/// The protocol does not know why it was told to cancel.
void amend(Error& error, const Ticket& ticket, protocol::Fate fate) {
  if (ticket.mark && ticket.mark->is_closed()) {
    error.code = ErrorCode::closed;
    error.detail = "the group's handle is gone";
  } else if (ticket.cancellation && fate == protocol::Fate::in_doubt &&
             error.code == ErrorCode::cancelled) {
    error.code = ErrorCode::outcome_unknown;
    error.detail = "cancelled, and the server did not say what became of the call";
  }
}

}  // namespace

void complete(Ticket& ticket, Outcome outcome) {
  if (!outcome.reply) amend(outcome.reply.error(), ticket, outcome.fate);
  if (ticket.settle) ticket.settle(outcome);
  if (ticket.done) ticket.done(std::move(outcome));
}

std::uint64_t PendingCalls::add(Ticket&& ticket) {
  if (first_free_ == nowhere) {
    entries_.emplace_back();
    first_free_ = entries_.size() - 1;
  }
  const std::uint64_t slot = first_free_;
  Entry& entry = entries_[slot];
  first_free_ = entry.next_free;
  entry.ticket = std::move(ticket);
  ++count_;
  return slot;
}

Ticket PendingCalls::take(std::uint64_t slot) {
  Entry& entry = entries_[slot];
  Ticket ticket = std::move(entry.ticket);
  entry.call = 0;
  entry.is_cancelled = false;
  entry.give_up_at = base::far_future;
  entry.next_free = std::exchange(first_free_, slot);
  if (--count_ == 0 && entries_.size() > spare_slots_max) {  // many once are not many for ever
    std::vector<Entry>().swap(entries_);
    first_free_ = nowhere;
  }
  return ticket;
}

void PendingCalls::cancel(CallId call, protocol::Protocol& protocol, Instant now) {
  const auto* const found = protocol.requests().find(call);
  if (found != nullptr) cancel(entries_[found->user_data], protocol, now);
}

void PendingCalls::cancel(const CancelRequests& requests, protocol::Protocol& protocol,
                          Instant now) {
  std::vector<std::pair<CallId, std::uint64_t>> meant;
  for (std::uint64_t slot = 0; slot < entries_.size(); ++slot) {
    const Entry& entry = entries_[slot];
    if (entry.call == 0) continue;
    if (!requests.covers(entry.ticket.serial, entry.ticket.mark.get())) continue;
    meant.emplace_back(entry.call, slot);
  }
  std::sort(meant.begin(), meant.end());  // they end in the order in which they began
  for (const auto& [call, slot] : meant) cancel(entries_[slot], protocol, now);
}

/// Whether the call may be at the server, who can be asked to end it.
bool PendingCalls::is_there(const Entry& entry, protocol::Protocol& protocol) {
  const auto* const call = protocol.requests().find(entry.call);
  return protocol.established() && call != nullptr && call->is_sent();
}

/// Once.
void PendingCalls::cancel(Entry& entry, protocol::Protocol& protocol, Instant now) {
  if (entry.ticket.is_lasting || std::exchange(entry.is_cancelled, true)) return;
  auto& cancellation = entry.ticket.cancellation;
  if (!cancellation) return protocol.cancel(entry.call, now);
  if (auto* const take = std::get_if<wire::CancelTake>(&*cancellation)) {
    if (!is_there(entry, protocol)) return protocol.cancel(entry.call, now);
    take->request = entry.call;
  }
  std::visit([&](const auto& body) { protocol.submit(body, cancel_patience, now, nowhere); },
             *cancellation);
  entry.give_up_at = now + cancel_patience;
  give_up_at_ = std::min(give_up_at_, entry.give_up_at);
}

void PendingCalls::give_up_cancelled(protocol::Protocol& protocol, Instant now) {
  if (now < give_up_at_) return;
  give_up_at_ = base::far_future;
  for (Entry& entry : entries_) {
    if (entry.give_up_at <= now) {
      entry.give_up_at = base::far_future;
      protocol.cancel(entry.call, now);
    } else {
      give_up_at_ = std::min(give_up_at_, entry.give_up_at);
    }
  }
}

}  // namespace muster::client
