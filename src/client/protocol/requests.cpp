// The life of a call: queued -> sent -> answered, or ended here without an answer. Requests leave
// in the order of their ids. While the connection is down they wait; after a resume those that had
// been sent are sent again first, with what is left of their time, and the server answers a
// repetition as it answered, or will answer, the first.
//
// A call that ends here although it was sent is abandoned: the server lets its reply go without
// taking it for received. A call that lasts ends with its answer, or with the session: it has no
// deadline, and is neither cancelled nor ended while the store is suspended.
//
// A reply is either acknowledged or abandoned, never both; by whoever submitted the call, once that
// has looked at it, if the receipt is its own.

#include "client/protocol/requests.h"

#include <algorithm>

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

bool takes(wire::Operation operation) {
  return operation == wire::operation<wire::Take> || operation == wire::operation<wire::QueuePop>;
}

/// Its answer gives the handle of an epoch.
bool forms(wire::Operation operation) {
  return operation == wire::operation<wire::Join> || operation == wire::operation<wire::Regroup>;
}

/// What the request may still take. Only a call that was made to ask once asks with zero, or one
/// that lasts: it never waits at the server.
Duration remaining_time(const Call& call, Instant now) {
  if (call.timeout == Duration::zero()) {
    return call.timeout;
  }
  return std::max(call.deadline - now, Duration(1));
}

/// Of the operation's fields, beside the prefix of a request.
std::uint64_t fields_bytes_max(std::uint64_t request_bytes_max) {
  constexpr std::uint64_t prefix = 12 + 8ull * wire::ids_per_frame_max;
  return request_bytes_max > prefix ? request_bytes_max - prefix : 0;
}

}  // namespace

Requests::Requests(const Session& session, const ConnectionState& connection, Lease& lease,
                   Effects& effects, CallId last_id)
    : session_(session),
      connection_(connection),
      lease_(lease),
      effects_(effects),
      last_id_(last_id) {}

Call& Requests::add(const wire::RequestBody& body, Duration timeout, std::uint64_t user_data,
                    Instant now) {
  Call& call = calls_.add(++last_id_);
  call.user_data = user_data;
  call.operation = wire::operation_of(body);
  call.name = name_of_call(body);
  call.is_barrier = is_barrier(body);
  call.submitted = now;
  call.deadline = base::deadline_after(now, timeout);
  call.timeout = call.deadline - now;
  return call;
}

Call& Requests::add_lasting(const wire::RequestBody& body, std::uint64_t user_data, Instant now) {
  Call& call = add(body, Duration::zero(), user_data, now);
  call.is_lasting = true;
  call.deadline = base::far_future;
  return call;
}

void Requests::queue(Call& call, const wire::RequestBody& body) {
  wire::append_operation(call.fields, body);
  calls_.wake_at(call, call.deadline);
}

void Requests::send_queued(Instant now) {
  if (!connection_.established()) return;
  const std::uint32_t in_flight_max = std::max(session_.server().limits.cached_results_max, 1u);
  const std::uint64_t bytes_max = fields_bytes_max(session_.frame_limits().request_bytes_max);
  while (Call* const call = calls_.first_unsent()) {
    if (call->fields.size() > bytes_max) {
      Error error = session_.error_of(
          ErrorCode::too_large, "the request is larger than the server takes; give less at a time");
      error.actual = call->fields.size();
      error.limit = bytes_max;
      end(call->id, std::move(error), now);
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

void Requests::send(Call& call, Instant now) {
  send_abandons();
  const std::uint64_t serial = ++last_serial_;
  request_.id = call.id;
  request_.timeout = remaining_time(call, now);
  request_.acknowledged = receipts_.take_acknowledgements(serial);
  wire::append_request(effects_.outgoing(), request_, call.operation, call.fields);
  calls_.mark_sent(call, serial);
  if (wire::is_kept(call.operation)) {
    if (!call.is_in_flight) ++in_flight_count_;
    call.is_in_flight = true;
    if (wire::may_wait(call.operation)) maybe_parked_.push_back({serial, call.id});
  }
  if (call.deadline <= now) calls_.wake_at(call, call.deadline + session_.server().limits.slack);
}

void Requests::send_again(Instant now) {
  while (receipts_.has_acknowledgements()) send_acknowledgements();
  send_abandons();
  for (const CallId id : calls_.sent_ids()) {
    Call& call = *calls_.find(id);
    call.is_repeated = true;
    send(call, now);
  }
}

void Requests::send_abandons() {
  while (connection_.stands() && receipts_.has_abandons()) {
    const auto& ids = receipts_.take_abandons(++last_serial_);
    wire::append_ids(effects_.outgoing(), wire::FrameType::abandon, 0, ids);
  }
}

void Requests::send_acknowledgements() {
  const auto& ids = receipts_.take_acknowledgements(++last_serial_);
  wire::append_ids(effects_.outgoing(), wire::FrameType::acknowledge, 0, ids);
}

void Requests::send_heartbeat(Instant now) {
  const std::uint64_t serial = ++last_serial_;
  const std::uint64_t number = lease_.beat(serial, now);
  wire::append_ids(effects_.outgoing(), wire::FrameType::heartbeat, number,
                   receipts_.take_acknowledgements(serial));
}

void Requests::confirm(std::uint64_t serial) {
  receipts_.confirm(serial);
  while (!maybe_parked_.empty() && maybe_parked_.front().first <= serial) {
    if (Call* const call = calls_.find(maybe_parked_.front().second)) leave_flight(*call);
    maybe_parked_.pop_front();
  }
}

void Requests::leave_flight(Call& call) {
  if (call.is_in_flight) --in_flight_count_;
  call.is_in_flight = false;
}

void Requests::answer(Call& call, Result<std::string> reply, Instant now) {
  const std::uint64_t serial = call.serial;
  const bool is_only_sending = !call.is_repeated;
  // What was done is also learned by asking again.
  const bool is_asked_again = call.operation == wire::operation<wire::Recover>;
  const bool is_release = (call.is_barrier || is_asked_again) && reply.has_value();
  const bool is_held = call.receipt == Receipt::by_caller && reply.has_value() && may_be_held(call);
  if (is_held) {
    receipts_.hold(call.id);
    if (call.is_in_flight && forms(call.operation)) {
      call.is_in_flight = false;  // from here on it counts by its id
      held_in_flight_.insert(call.id);
    }
  } else if (wire::is_kept(call.operation)) {
    receipts_.acknowledge(call.id);
  }
  complete(call, std::move(reply), Fate::answered, now, is_held);
  calls_.remove(call);
  // The answer to a repetition may have been under way before the repetition arrived.
  if (is_only_sending) confirm(serial);
  if (is_release) send_acknowledgements();  // the barrier's confirmation
}

/// What was taken, only by a server that can give it back; and only so many, since the server keeps
/// no more: what comes then is received at once. Any other answer in any case.
bool Requests::may_be_held(const Call& call) const {
  if (!takes(call.operation)) return true;
  const wire::ServerHello& server = session_.server();
  return server.gives_back && receipts_.held_count() < server.limits.parked_waits_max / 2;
}

void Requests::conclude(CallId id, Verdict verdict) {
  if (held_in_flight_.erase(id) != 0) --in_flight_count_;
  if (verdict == Verdict::accepted) return receipts_.acknowledge_held(id);
  receipts_.abandon_held(id);
  send_abandons();
}

/// Whoever asked has been told otherwise. Replies that were abandoned or acknowledged may still
/// come, once more after a resume; any other is one that the server may let go.
void Requests::drop_reply(std::uint64_t id) {
  if (receipts_.has(id) || id == 0 || id > last_id_) return;
  wire::append_ids(effects_.outgoing(), wire::FrameType::abandon, 0, {id});
  ++last_serial_;
}

/// The call is to be removed.
void Requests::complete(Call& call, Result<std::string> reply, Fate fate, Instant now,
                        bool is_held) {
  leave_flight(call);
  if (!reply) {
    Error& error = reply.error();
    if (error.operation.empty()) error.operation = call.name;
    if (error.where.empty()) error.where = session_.options().where;
    if (error.decided_by.empty()) error.decided_by = fate == Fate::answered ? "server" : "client";
    error.elapsed = now - call.submitted;
  }
  effects_.add(Complete{call.id, call.user_data, std::move(reply), fate, is_held});
}

void Requests::end(CallId id, Error error, Instant now) {
  Call& call = *calls_.find(id);
  const bool was_sent = call.is_sent();
  if (was_sent && session_.exists()) receipts_.abandon(id);
  complete(call, std::move(error), was_sent ? Fate::in_doubt : Fate::unsent, now);
  calls_.remove(call);
}

void Requests::end_all(const Error& error, Instant now) {
  for (Call& call : calls_.remove_all()) {
    const bool was_sent = call.is_sent();
    if (was_sent && session_.exists()) receipts_.abandon(call.id);
    complete(call, error, was_sent ? Fate::in_doubt : Fate::unsent, now);
  }
}

void Requests::end_passing(const Error& error, Instant now) {
  for (const CallId id : calls_.passing_ids()) end(id, error, now);
}

void Requests::end_overdue(Duration silence, Instant now) {
  while (Call* const call = calls_.due(now)) {
    if (is_past_end(*call, now)) {
      end(call->id, overdue(*call, silence), now);
    } else {
      calls_.wake_at(*call, call->deadline + session_.server().limits.slack);
    }
  }
}

/// Of a call whose deadline has passed: whether it waits no more. The slack is for the server's
/// own decision to arrive, so there is none when no server is there to decide.
bool Requests::is_past_end(const Call& call, Instant now) const {
  if (now >= call.deadline + session_.server().limits.slack) return true;
  return call.is_sent() ? connection_.waits_for_restart() : !connection_.established();
}

Error Requests::overdue(const Call& call, Duration silence) const {
  if (call.is_sent() && !connection_.waits_for_restart()) {
    std::string detail = "no answer came";
    if (!connection_.established()) detail += "; " + session_.last_trouble().detail;
    return session_.error_of(ErrorCode::outcome_unknown, std::move(detail));
  }
  if (!connection_.established()) return session_.unreachable(silence);
  return session_.error_of(ErrorCode::unavailable, std::to_string(in_flight_count_) +
                                                       " requests are in flight without an answer");
}

void Requests::session_ended() {
  receipts_.clear();
  in_flight_count_ -= static_cast<std::uint32_t>(held_in_flight_.size());
  held_in_flight_.clear();
}

void Requests::connection_lost() {
  receipts_.connection_lost();
  maybe_parked_.clear();
}

}  // namespace muster::client::protocol
