#include <algorithm>
#include <concepts>
#include <type_traits>

#include "core/engine_impl.h"
#include "wire/error_body.h"
#include "wire/operation_table.h"

// A request's life: what it acknowledges is forgotten -> has it come before (a resend after a
// reconnect)? then it waits where it waited, or gets the answer that it got -> is it allowed and
// is there room for its answer? -> the table or the groups answer, now or later (parked) ->
// what changed something stays in the cache until the client has acknowledged the answer.

namespace muster::core {
namespace {

using wire::Operation;

/// What a cached answer takes beside its head: its memory, and a bucket.
constexpr std::uint64_t cached_answer_bytes = sizeof(Answer) + 48;

/// What a spare one keeps: the heads of usual answers take less.
constexpr std::size_t spare_head_bytes_max = 256;

Answer error_answer(const Error& error) {
  Answer answer;
  answer.code = static_cast<std::uint16_t>(error.code);
  wire::append_error(answer.head, error);
  return answer;
}

/// An answer that is kept beyond this event has its own copy of a value of the table.
void own_value(Answer& answer, Quota& quota) {
  if (answer.value.empty()) return;
  answer.tail = make_payload(quota, answer.value, Charging::always);
  answer.value = {};
}

}  // namespace

/// Hands a request to the room that it is for.
struct Engine::Impl::Dispatch {
  Impl& engine;
  const RequestContext& context;
  Table& table = context.session.name_space.table;
  Groups& groups = context.session.name_space.groups;

  void operator()(const wire::Set& request) const { table.set(context, request); }
  void operator()(const wire::Get& request) const { table.get(context, request); }
  void operator()(const wire::Take& request) const { table.take(context, request); }
  void operator()(const wire::Add& request) const { table.add(context, request); }
  void operator()(const wire::CompareSet& request) const { table.compare_set(context, request); }
  void operator()(const wire::Append& request) const { table.append(context, request); }
  void operator()(const wire::Remove& request) const { table.remove(context, request); }
  void operator()(const wire::Exists& request) const { table.exists(context, request); }
  void operator()(const wire::Wait& request) const { table.wait(context, request); }
  void operator()(const wire::MultiGet& request) const { table.multi_get(context, request); }
  void operator()(const wire::MultiSet& request) const { table.multi_set(context, request); }
  void operator()(const wire::Touch& request) const { table.touch(context, request); }
  void operator()(const wire::List& request) const {
    if (request.kind == wire::ListKind::objects) return groups.list_objects(context, request);
    table.list_keys(context, request);
  }
  void operator()(const wire::Join& request) const { groups.join(context, request); }
  void operator()(const wire::Leave& request) const { groups.leave(context, request); }
  void operator()(const wire::Regroup& request) const { groups.regroup(context, request); }
  void operator()(const wire::CancelRegroup& request) const {
    groups.cancel_regroup(context, request);
  }
  void operator()(const wire::Members& request) const { groups.members(context, request); }
  void operator()(const wire::CollectiveCall& request) const {
    groups.collective(context, request);
  }
  void operator()(const wire::CancelRound& request) const { groups.cancel_round(context, request); }
  void operator()(const wire::Send& request) const { groups.send(context, request); }
  void operator()(const wire::Receive& request) const { groups.receive(context, request); }
  void operator()(const wire::ExpireData& request) const { groups.expire_data(context, request); }
  void operator()(const wire::Recover& request) const { groups.recover(context, request); }
  void operator()(const wire::ReportDead& request) const { engine.report_dead(context, request); }
  void operator()(const wire::Status&) const { engine.send_status(context); }
  void operator()(const wire::Sessions& request) const { engine.send_sessions(context, request); }
  void operator()(const wire::Groups& request) const { groups.list(context, request); }
  void operator()(const wire::InspectGroup& request) const { groups.inspect(context, request); }
  void operator()(const wire::Waiters& request) const { engine.send_waiters(context, request); }
};

void Engine::Impl::on(const Requested& event) {
  const wire::Request& request = *event.request;
  Session* const session = session_on(event.connection);
  if (session == nullptr) return turn_away(event);
  heard(*session);
  acknowledge(*session, request.acknowledged);
  if (const auto waits = session->parked.find(request.id); waits != session->parked.end()) {
    return hasten(waits->second, request.timeout);
  }
  const Answer* const kept = session->unacknowledged.find(request.id);
  if (kept != nullptr) {
    return send_kept(*session, request.id, *kept);
  }
  const Operation operation = wire::operation_of(request.body);
  const RequestContext context{*session, request.id, operation,
                               std::clamp(request.timeout, Duration::zero(), base::timeout_max),
                               now_};
  brought_in_ = event.memory;
  ++operation_counts_[request.body.index()];
  if (auto why = refusal(context)) {
    why->operation = wire::name_of(operation);
    why->decided_by = "server";
    // Nothing was done, and there may be no room in the cache: a repetition is tried anew.
    return deliver(*session, request.id, error_answer(*why), Caching::never);
  }
  static_assert(wire::every_request([]<class Body>(std::type_identity<Body>) {
                  return std::invocable<const Dispatch&, const Body&>;
                }),
                "every operation has its function in Dispatch");
  std::visit(Dispatch{*this, context}, request.body);
}

/// Of a connection that has no session, or has none any more: then its last frames are answered.
void Engine::Impl::turn_away(const Requested& event) {
  const Error* const reason = closed_.reason(event.connection);
  if (reason == nullptr) return static_cast<void>(speaker(event.connection, "a request"));
  Answer answer = error_answer(*reason);
  effects_.emplace_back(SendReply{
      event.connection, event.request->id, answer.code, std::move(answer.head), {}, nullptr});
}

/// A repetition says what is left of the call's time. It is less than what the server thinks when
/// the request was long on its way.
void Engine::Impl::hasten(Parked& parked, Duration left) {
  const Instant deadline = base::deadline_after(now_, left);
  if (deadline >= parked.deadline) return;
  parked.deadline = deadline;
  timers_.arm(parked.timer, deadline);
}

std::optional<Error> Engine::Impl::refusal(const RequestContext& context) const {
  const Session& session = context.session;
  const Operation operation = context.operation;
  const bool is_observer = session.role == wire::Role::observer;
  const bool is_for_clients = wire::facts_of(operation).askers == wire::Askers::clients;
  if (is_observer && is_for_clients) {
    return failure(ErrorCode::permission_denied,
                   "an observer cannot take part in groups; connect as a client");
  }
  if (!wire::is_kept(operation)) return std::nullopt;
  // Answers to parked requests count against the parked ones: they come in bursts that the
  // client cannot foresee, such as the release of many barriers.
  const std::size_t cached_count = session.unacknowledged.size() - session.cached_parked_count;
  if (cached_count >= options_.cached_results_max) {
    return exhausted("cached_results_max answers are not acknowledged yet", cached_count,
                     options_.cached_results_max);
  }
  if (session.cached_bytes >= options_.cached_result_bytes_max) {
    return exhausted("answers of cached_result_bytes_max bytes are not acknowledged yet",
                     session.cached_bytes, options_.cached_result_bytes_max);
  }
  return std::nullopt;
}

void Engine::Impl::report_dead(const RequestContext& context, const wire::ReportDead& request) {
  const Session& reporter = context.session;
  if (request.process == reporter.process.id) {
    return fail(context, failure(ErrorCode::invalid_argument,
                                 "a process cannot report itself dead; close the store instead"));
  }
  std::vector<Session*> reported;
  if (const auto process = processes_.find(request.process); process != processes_.end()) {
    for (Session& session : process->second) {
      if (&session.name_space == &reporter.name_space) reported.push_back(&session);
    }
  }
  if (reported.empty()) {
    return fail(context, failure(ErrorCode::not_found, "process " + to_string(request.process) +
                                                           " has no session in this namespace"));
  }
  answer(context, Answer{});
  Error why = failure(ErrorCode::fenced, "declared dead: " + quoted(request.reason));
  why.decided_by = describe(reporter.process);
  for (Session* session : reported) {
    log(LogLevel::warning, "session " + std::to_string(session->id) + " of " +
                               describe(session->process) + " was declared dead by " +
                               why.decided_by + ": " + quoted(request.reason));
    end_session(*session, why, LossCause::reported);
  }
}

void Engine::Impl::on(const Acknowledged& event) {
  Session* session = speaker(event.connection, "an acknowledgement");
  if (session != nullptr) acknowledge(*session, *event.request_ids);
}

void Engine::Impl::on(const Heartbeat& event) {
  Session* session = speaker(event.connection, "a heartbeat");
  if (session == nullptr) return;
  if (event.acknowledged != nullptr) acknowledge(*session, *event.acknowledged);
  effects_.emplace_back(SendHeartbeatReply{event.connection, event.number});
}

void Engine::Impl::acknowledge(Session& session, const std::vector<std::uint64_t>& request_ids) {
  for (const std::uint64_t id : request_ids) {
    Answers::node_type kept = session.unacknowledged.take(id);
    if (!kept) continue;
    const OnAcknowledged on_acknowledged = kept->answer.on_acknowledged;
    forget(session, std::move(kept));
    Groups& groups = session.name_space.groups;
    if (const auto* object = std::get_if<ReceivedObject>(&on_acknowledged)) {
      groups.acknowledged(session, *object);
    } else if (const auto* part = std::get_if<RoundPart>(&on_acknowledged)) {
      groups.acknowledged(session, *part);
    }
  }
}

void Engine::Impl::on(const Abandoned& event) {
  Session* session = speaker(event.connection, "an abandon");
  if (session == nullptr) return;
  for (const std::uint64_t id : *event.request_ids) abandon(*session, id);
}

/// An answer that nobody wants is dropped, not acknowledged: an object in it stays.
void Engine::Impl::abandon(Session& session, std::uint64_t request_id) {
  if (auto kept = session.unacknowledged.take(request_id)) forget(session, std::move(kept));
  const auto found = session.parked.find(request_id);
  if (found == session.parked.end()) return;
  const auto taken = take_parked(found->second);
  taken.mapped().wait->abandoned();
}

Payload Engine::Impl::keep_brought(Quota& quota, std::string_view bytes) {
  if (brought_in_ == nullptr || !brought_in_->is_mostly(bytes)) return make_payload(quota, bytes);
  brought_ = brought_in_->take_over(quota, bytes);
  return brought_;
}

const Answer& Engine::Impl::keep(Session& session, std::uint64_t request_id, Answer&& answer) {
  Answers::node_type kept = spare_answers_.take();
  if (!kept) kept = std::make_unique<Answers::Kept>();
  kept->request_id = request_id;
  kept->answer = std::move(answer);
  const Answer& there = session.unacknowledged.insert(std::move(kept));
  ++cached_count_;
  return there;
}

void Engine::Impl::forget(Session& session, Answers::node_type kept) {
  --cached_count_;
  Answer& answer = kept->answer;
  session.quota.release(answer.head.size() + cached_answer_bytes);
  if (answer.was_parked) {
    --session.cached_parked_count;
  } else {
    session.cached_bytes -= answer.head.size();
  }
  answer.tail.reset();
  if (answer.head.capacity() > spare_head_bytes_max) answer.head = {};
  spare_answers_.keep(std::move(kept));
}

void Engine::Impl::forget_answers(Session& session) {
  session.unacknowledged.drain([&](Answers::node_type kept) { forget(session, std::move(kept)); });
}

Parked* Engine::Impl::park(const RequestContext& context) {
  Session& session = context.session;
  const std::uint32_t limit = options_.limits.parked_waits_max;
  const std::size_t actual = session.parked.size() + session.cached_parked_count;
  if (actual >= limit) {
    fail(context, exhausted("parked_waits_max requests of this session wait already, or their "
                            "answers are not acknowledged yet",
                            actual, limit));
    return nullptr;
  }
  if (Quota& quota = session.quota; !quota.charge_reserve(parked_bytes)) {
    fail(context, memory_exhausted(*this, quota, parked_bytes));
    return nullptr;
  }
  session.quota.release(parked_bytes);  // the request charges them itself
  const std::uint64_t id = context.request_id;
  Parked& parked = session.parked.try_emplace(id, session, id, context.operation).first->second;
  parked.received = now_;
  parked.timeout = context.timeout;
  parked.deadline = base::deadline_after(now_, context.timeout);
  ++parked_count_;
  timers_.arm(parked.timer, parked.deadline);
  return &parked;
}

ParkedByRequest::node_type Engine::Impl::take_parked(Parked& parked) {
  --parked_count_;
  return parked.session.parked.extract(parked.request_id);
}

void Engine::Impl::answer(const RequestContext& context, Answer&& answer) {
  deliver(context.session, context.request_id, std::move(answer),
          wire::changes_state(context.operation) ? Caching::always : Caching::if_acknowledged);
}

void Engine::Impl::fail(const RequestContext& context, Error error) {
  if (error.operation.empty()) error.operation = wire::name_of(context.operation);
  if (error.decided_by.empty()) error.decided_by = "server";
  answer(context, error_answer(error));
}

void Engine::Impl::answer(Parked& parked, Answer&& answer) {
  answer.was_parked = true;
  const auto taken = take_parked(parked);
  deliver(parked.session, parked.request_id, std::move(answer),
          wire::changes_state(parked.operation) ? Caching::always : Caching::if_acknowledged);
}

void Engine::Impl::fail(Parked& parked, Error error) {
  if (error.operation.empty()) error.operation = wire::name_of(parked.operation);
  if (error.decided_by.empty()) error.decided_by = "server";
  if (error.decided_by_timeout == Duration::zero()) error.decided_by_timeout = parked.timeout;
  error.elapsed = now_ - parked.received;
  answer(parked, error_answer(error));
}

void Engine::Impl::deliver(Session& session, std::uint64_t request_id, Answer&& answer,
                           Caching caching) {
  if (session.ended) return;
  const bool acknowledged_for_more =
      !std::holds_alternative<std::monostate>(answer.on_acknowledged);
  if (caching == Caching::never ||
      (caching == Caching::if_acknowledged && !acknowledged_for_more)) {
    return send(session, request_id, answer.code, std::move(answer.head), answer.value,
                std::move(answer.tail));
  }
  own_value(answer, session.quota);
  session.quota.charge_always(answer.head.size() + cached_answer_bytes);
  if (answer.was_parked) {
    ++session.cached_parked_count;
  } else {
    session.cached_bytes += answer.head.size();
  }
  send_kept(session, request_id, keep(session, request_id, std::move(answer)));
}

void Engine::Impl::send_kept(const Session& session, std::uint64_t request_id,
                             const Answer& answer) {
  send(session, request_id, answer.code, std::string(answer.head), {}, Payload(answer.tail));
}

void Engine::Impl::send(const Session& session, std::uint64_t request_id, std::uint16_t code,
                        std::string&& head, std::string_view value, Payload&& tail) {
  if (session.connection == 0) return;  // it is asked for again, or has expired by then
  effects_.emplace_back(
      SendReply{session.connection, request_id, code, std::move(head), value, std::move(tail)});
}

}  // namespace muster::core
