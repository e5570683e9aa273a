// The life of a call: queued -> sent -> answered, or ended here without an answer. Requests leave
// in the order of their ids. While the connection is down they wait; after a resume those that had
// been sent are sent again first, with what is left of their time, and the server answers a
// repetition as it answered, or will answer, the first.
//
// A call that ends here although it was sent is abandoned: the server lets its reply go without
// taking it for received. A reply is either acknowledged or abandoned, never both.

#include <algorithm>

#include "client/protocol/protocol.h"
#include "wire/operation_table.h"

namespace muster::client::protocol {
namespace {

std::string_view name_of_call(const wire::RequestBody& body) {
  const auto* collective = std::get_if<wire::CollectiveCall>(&body);
  return collective != nullptr ? wire::name_of(collective->collective)
                               : wire::name_of(wire::operation_of(body));
}

bool is_barrier(const wire::RequestBody& body) {
  const auto* collective = std::get_if<wire::CollectiveCall>(&body);
  return collective != nullptr && collective->collective == wire::Collective::barrier;
}

/// What the request may still take. Only a call that was made to ask once asks with zero.
Duration remaining_time(const Call& call, Instant now) {
  if (call.timeout == Duration::zero()) {
    return call.timeout;
  }
  return std::max(call.deadline - now, Duration(1));
}

/// Of the operation's fields, beside the prefix of a request.
std::uint64_t fields_bytes_max(const wire::ServerLimits& limits) {
  constexpr std::uint64_t prefix = 12 + 8ull * wire::ids_per_frame_max;
  const std::uint64_t body = limits.request_bytes_max();
  return body > prefix ? body - prefix : 0;
}

}  // namespace

CallId Protocol::submit(const wire::RequestBody& body, Duration timeout, Instant now) {
  settle_block(now);
  const CallId id = ++last_id_;
  Call& call = calls_.add(id);
  call.operation = wire::operation_of(body);
  call.name = name_of_call(body);
  call.is_barrier = is_barrier(body);
  call.submitted = now;
  call.deadline = base::deadline_after(now, timeout);
  call.timeout = call.deadline - now;
  if (block_ != Block::none) {
    end_call(id, block_ == Block::suspended ? suspension(now) : failure_, now);
    return id;
  }
  wire::append_operation(call.fields, body);
  calls_.wake_at(call, call.deadline);
  send_queued(now);
  end_overdue_calls(now);
  send_abandons();
  return id;
}

void Protocol::cancel(CallId id, Instant now) {
  settle_block(now);
  if (calls_.find(id) == nullptr) return;
  end_call(id, error_of(ErrorCode::cancelled, "cancelled by its caller"), now);
  send_abandons();
  send_queued(now);
}

void Protocol::send_queued(Instant now) {
  if (!established()) return;
  const std::uint32_t in_flight_max = std::max(server_.limits.requests_in_flight_max, 1u);
  const std::uint64_t bytes_max = fields_bytes_max(server_.limits);
  while (Call* const call = calls_.first_unsent()) {
    if (call->fields.size() > bytes_max) {
      Error error = error_of(ErrorCode::too_large, "the request is larger than the server takes");
      error.actual = call->fields.size();
      error.limit = bytes_max;
      end_call(call->id, std::move(error), now);
      continue;
    }
    if (wire::is_kept(call->operation) && in_flight_count_ >= in_flight_max) {
      const bool is_asked =
          maybe_parked_.empty() || lease_.last_serial() > maybe_parked_.back().first;
      if (!is_asked) send_heartbeat(now);
      return;
    }
    send(*call, now);
  }
}

void Protocol::send(Call& call, Instant now) {
  send_abandons();
  const std::uint64_t serial = ++last_serial_;
  request_.id = call.id;
  request_.timeout = remaining_time(call, now);
  request_.acknowledged = letters_.take_acknowledgements(serial);
  wire::append_request(outgoing(), request_, call.operation, call.fields);
  calls_.mark_sent(call, serial);
  if (wire::is_kept(call.operation)) {
    if (!call.is_in_flight) ++in_flight_count_;
    call.is_in_flight = true;
    if (wire::may_wait(call.operation)) maybe_parked_.push_back({serial, call.id});
  }
  if (call.deadline <= now) calls_.wake_at(call, call.deadline + server_.limits.slack);
}

void Protocol::send_again(Instant now) {
  while (letters_.has_acknowledgements()) send_acknowledgements();
  send_abandons();
  for (const CallId id : calls_.sent_ids()) {
    Call& call = *calls_.find(id);
    call.is_repeated = true;
    send(call, now);
  }
}

void Protocol::send_abandons() {
  while (established() && letters_.has_abandons()) {
    const auto& ids = letters_.take_abandons(++last_serial_);
    wire::append_ids(outgoing(), wire::FrameType::abandon, 0, ids);
  }
}

void Protocol::send_acknowledgements() {
  const auto& ids = letters_.take_acknowledgements(++last_serial_);
  wire::append_ids(outgoing(), wire::FrameType::acknowledge, 0, ids);
}

void Protocol::send_heartbeat(Instant now) {
  const std::uint64_t serial = ++last_serial_;
  const std::uint64_t number = lease_.beat(serial, now);
  wire::append_ids(outgoing(), wire::FrameType::heartbeat, number,
                   letters_.take_acknowledgements(serial));
}

void Protocol::confirm(std::uint64_t serial) {
  letters_.confirm(serial);
  while (!maybe_parked_.empty() && maybe_parked_.front().first <= serial) {
    if (Call* const call = calls_.find(maybe_parked_.front().second)) leave_flight(*call);
    maybe_parked_.pop_front();
  }
}

void Protocol::leave_flight(Call& call) {
  if (call.is_in_flight) --in_flight_count_;
  call.is_in_flight = false;
}

/// The call is to be removed.
void Protocol::complete(Call& call, Result<std::string> reply, Fate fate, Instant now) {
  leave_flight(call);
  if (!reply) {
    Error& error = reply.error();
    if (error.operation.empty()) error.operation = call.name;
    if (error.where.empty()) error.where = options_.where;
    if (error.decided_by.empty()) error.decided_by = fate == Fate::answered ? "server" : "client";
    error.elapsed = now - call.submitted;
  }
  emit(Complete{call.id, std::move(reply), fate});
}

void Protocol::end_call(CallId id, Error error, Instant now) {
  Call& call = *calls_.find(id);
  const bool was_sent = call.is_sent();
  if (was_sent && has_session_) letters_.abandon(id);
  complete(call, std::move(error), was_sent ? Fate::in_doubt : Fate::unsent, now);
  calls_.remove(call);
}

void Protocol::end_all_calls(const Error& error, Instant now) {
  for (Call& call : calls_.remove_all()) {
    const bool was_sent = call.is_sent();
    if (was_sent && has_session_) letters_.abandon(call.id);
    complete(call, error, was_sent ? Fate::in_doubt : Fate::unsent, now);
  }
}

}  // namespace muster::client::protocol
