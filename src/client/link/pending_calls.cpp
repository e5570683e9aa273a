#include "client/link/pending_calls.h"

#include <algorithm>

#include "client/failure.h"
#include "wire/operation_table.h"

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
  entry.cancellation = 0;
  entry.taken.reset();
  entry.next_free = std::exchange(first_free_, slot);
  if (--count_ == 0 && entries_.size() > spare_slots_max) {  // many once are not many for ever
    std::vector<Entry>().swap(entries_);
    first_free_ = nowhere;
  }
  return ticket;
}

void PendingCalls::cancel(CallId call, protocol::Protocol& protocol, Instant now) {
  const auto* const found = protocol.requests().find(call);
  if (found != nullptr) cancel_in(found->user_data, protocol, now);
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
  for (const auto& [call, slot] : meant) cancel_in(slot, protocol, now);
}

/// Once. A take is over at once only if it was not sent: else the server may have a value for it.
void PendingCalls::cancel_in(std::uint64_t slot, protocol::Protocol& protocol, Instant now) {
  Entry& entry = entries_[slot];
  if (entry.ticket.is_lasting || std::exchange(entry.is_cancelled, true)) return;
  auto& cancellation = entry.ticket.cancellation;
  if (!cancellation) return protocol.cancel(entry.call, now);
  auto* const take = std::get_if<wire::CancelTake>(&*cancellation);
  if (take != nullptr) {
    const auto* const call = protocol.requests().find(entry.call);
    if (call != nullptr && !call->is_sent()) return protocol.cancel(entry.call, now);
    take->request = entry.call;
  }
  entry.give_up_at = now + cancel_patience;
  give_up_at_ = std::min(give_up_at_, entry.give_up_at);
  const std::uint64_t told = take != nullptr ? ~slot : nowhere;
  const CallId asked = std::visit(
      [&](const auto& body) { return protocol.submit(body, cancel_patience, now, told); },
      *cancellation);
  if (take != nullptr) entry.cancellation = asked;
}

void PendingCalls::give_back(std::uint64_t slot, Outcome&& taken, protocol::Protocol& protocol,
                             Instant now) {
  entries_[slot].call = taken.call;
  entries_[slot].taken = std::move(taken);
  cancel_in(slot, protocol, now);
}

std::optional<PendingCalls::Ended> PendingCalls::completed(protocol::Complete& request,
                                                           protocol::Protocol& protocol,
                                                           Instant now) {
  const std::uint64_t slot = request.user_data;
  if (~slot < entries_.size()) return cancellation_ended(~slot, request, protocol, now);
  if (!has(slot, request.call)) {  // it was given up
    if (request.is_held) protocol.conclude(request.call, protocol::Verdict::refused, now);
    return std::nullopt;
  }
  Outcome outcome{std::move(request.reply), request.fate, request.is_held ? request.call : 0};
  if (outcome.reply.has_value() && entries_[slot].cancellation != 0) {
    entries_[slot].taken = std::move(outcome);
    return std::nullopt;
  }
  return Ended{take(slot), std::move(outcome)};
}

/// The server has said what became of a cancelled take, or has not.
std::optional<PendingCalls::Ended> PendingCalls::cancellation_ended(
    std::uint64_t slot, const protocol::Complete& request, protocol::Protocol& protocol,
    Instant now) {
  Entry& entry = entries_[slot];
  if (entry.cancellation != request.call) return std::nullopt;
  entry.cancellation = 0;
  bool is_given_back = false;
  if (request.reply.has_value()) {
    const auto reply = wire::decode_body<wire::CancelTakeReply>(*request.reply);
    is_given_back = reply.has_value() && reply->given_back;
  }
  std::optional<Outcome> taken = std::exchange(entry.taken, std::nullopt);
  if (!taken && !is_given_back) return std::nullopt;  // it ends by itself
  const CallId call = entry.call;
  Ticket ticket = take(slot);
  if (is_given_back) {
    // The rest of a long value may be under way.
    taken ? protocol.conclude(call, protocol::Verdict::accepted, now) : protocol.cancel(call, now);
    Error cancelled = failure(ErrorCode::cancelled, "cancelled by its caller");
    return Ended{std::move(ticket), {std::move(cancelled), protocol::Fate::answered}};
  }
  if (request.fate == protocol::Fate::in_doubt) {
    protocol.conclude(call, protocol::Verdict::refused, now);
    return Ended{std::move(ticket), {request.reply.error(), protocol::Fate::in_doubt}};
  }
  return Ended{std::move(ticket), *std::move(taken)};
}

void PendingCalls::give_up_cancelled(protocol::Protocol& protocol, Instant now) {
  if (now < give_up_at_) return;
  give_up_at_ = base::far_future;
  for (Entry& entry : entries_) {
    if (entry.give_up_at <= now) {
      entry.give_up_at = base::far_future;
      protocol.cancel(entry.taken ? entry.cancellation : entry.call, now);
    } else {
      give_up_at_ = std::min(give_up_at_, entry.give_up_at);
    }
  }
}

}  // namespace muster::client
