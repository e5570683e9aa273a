#include "core/session/engine_services.h"

#include <chrono>
#include <string>
#include <utility>

#include "base/text.h"
#include "core/session/failure.h"
#include "wire/error_body.h"
#include "wire/operation_table.h"

namespace muster::core {
namespace {

/// An answer that is kept beyond this event has its own copy of a value of the table.
void own_value(Answer& answer, Quota& quota) {
  if (answer.value.empty()) return;
  answer.tail = make_payload(quota, answer.value, Charging::always);
  answer.value = {};
}

/// None of its answers is kept. Apart, so that it costs others nothing.
[[gnu::noinline]] void send_to_guest(EffectList& effects, const Session& session,
                                     std::uint64_t request_id, Answer&& answer) {
  if (!session.ended) effects.send(session, request_id, std::move(answer));
}

}  // namespace

Answer error_answer(const Error& error) {
  Answer answer;
  answer.code = static_cast<std::uint16_t>(error.code);
  wire::append_error(answer.head, error);
  return answer;
}

EngineServices::EngineServices(Options options)
    : options_(std::move(options)), memory_(options_.memory_bytes_max) {
  memory_.freed.set_kept_max(options_.kept_memory_bytes_max);
  memory_.all.count_refusals_in(counted_.tallies.refusals);
}

EngineServices::~EngineServices() = default;

void EngineServices::begin_event(Instant now) {
  effects_.begin_event(options_.work_per_event_max);
  request_memory_.received = nullptr;
  request_memory_.retained.reset();
  clock_.observe(now);
}

Parked* EngineServices::park(const RequestContext& context) {
  Session& session = context.session;
  const std::uint32_t limit = options_.limits.parked_waits_max;
  const std::size_t actual = session.requests.parked.size() + session.requests.cached_parked_count;
  if (actual >= limit) {
    fail(context, exhausted(counted_.tallies, Limit::parked_waits,
                            "parked_waits_max requests of this session wait already, or their "
                            "answers are not acknowledged yet; wait for some, or raise the limit",
                            actual, limit));
    return nullptr;
  }
  if (!session.account.quota.has_reserve(parked_bytes)) {  // which the request charges itself
    fail(context, memory_exhausted(session.account.quota, parked_bytes));
    return nullptr;
  }
  session.requests.waiting->add(session);
  const std::uint64_t id = context.request_id;
  Parked& parked =
      session.requests.parked.try_emplace(id, session, id, context.operation).first->second;
  parked.received = now();
  parked.timeout = context.timeout;
  ++counted_.held.waits;
  counted_.parked.enter(parked.place, now());
  timers_.arm(parked.timer, base::deadline_after(now(), context.timeout));
  return &parked;
}

EngineServices::TakenParked EngineServices::take(Parked& parked) {
  --counted_.held.waits;
  parked.session.requests.waiting->remove(1);
  return parked.session.requests.parked.extract(parked.request_id);
}

bool EngineServices::repeats(Session& session, std::uint64_t request_id, Duration timeout) {
  if (const auto waits = session.requests.parked.find(request_id);
      waits != session.requests.parked.end()) {
    // A repetition says what is left of the call's time. It is less than what the server thinks
    // when the request was long on its way.
    Parked& parked = waits->second;
    const Instant deadline = base::deadline_after(now(), timeout);
    if (deadline >= parked.deadline()) return true;
    timers_.arm(parked.timer, deadline);
    return true;
  }
  const Answer* const kept = session.requests.unacknowledged.find(request_id);
  if (kept == nullptr) return false;
  effects_.send_copy(session, request_id, *kept);
  return true;
}

/// An answer that nobody wants is dropped, not acknowledged: an object in it stays, and what was
/// taken is there again.
std::optional<OnAcknowledged> EngineServices::abandon_answer(Session& session,
                                                             std::uint64_t request_id) {
  if (cache_.give_back(session, request_id)) return std::nullopt;
  return cache_.forget(session, request_id);
}

void EngineServices::abandon_wait(Session& session, std::uint64_t request_id) {
  const auto found = session.requests.parked.find(request_id);
  if (found == session.requests.parked.end()) return;
  const TakenParked taken = take(found->second);
  if (!session.is_guest) counted_.tallies.outcomes.count_abandoned(taken.mapped().operation);
  taken.mapped().wait->abandoned();
}

bool EngineServices::give_back(Session& session, std::uint64_t request_id) {
  if (!cache_.give_back(session, request_id)) return false;
  Answer answer = error_answer(failure(ErrorCode::cancelled, ""));
  answer.counts = Answer::Counts::as_taken;  // as before: its client does not reckon with more
  cache_.keep(session, request_id, std::move(answer));
  return true;
}

void EngineServices::forget(Session& session) {
  effects_.spend(session.requests.parked.size() + session.requests.unacknowledged.size());
  counted_.held.waits -= session.requests.parked.size();
  if (!session.is_guest) {
    for (const auto& [id, parked] : session.requests.parked) {
      counted_.tallies.outcomes.count_abandoned(parked.operation);
    }
  }
  session.requests.waiting->remove(session.requests.parked.size());
  session.requests.parked.clear();
  session.requests.waiting->forget(session);
  cache_.forget_all(session);
}

void EngineServices::answer(const RequestContext& context, Answer&& answer) {
  deliver(context.session, context.request_id, context.operation, std::move(answer));
}

/// The first refusal by a limit in a minute; all of them are counted.
void EngineServices::log_limit(const Session& session, const Error& error) {
  if (error.code != ErrorCode::resource_exhausted) return;
  const std::size_t limit = counted_.tallies.refusals.take_last();
  const bool is_known = limit == static_cast<std::size_t>(Limit::system_memory);  // by the server
  if (limit == limits_count || is_known) return;
  Instant& logged = logged_limits_[limit];
  if (logged != Instant{} && now() - logged < std::chrono::minutes(1)) return;
  logged = now();
  effects_.log(
      LogLevel::warning,
      "limit " + std::string(limit_names[limit]) + ": " + error.operation + " of session " +
          std::to_string(session.id) + " of " + describe(session.process) + " in namespace " +
          base::quoted_text(session.requests.waiting->name()) + " was refused: " + error.detail,
      session.account.unit.name);
}

void EngineServices::fail(const RequestContext& context, Error error) {
  if (error.operation.empty()) error.operation = wire::name_of(context.operation);
  if (error.decided_by.empty()) error.decided_by = "server";
  log_limit(context.session, error);
  answer(context, error_answer(error));
}

void EngineServices::turn_away(const RequestContext& context, Error error) {
  error.operation = wire::name_of(context.operation);
  error.decided_by = "server";
  log_limit(context.session, error);
  counted_.tallies.outcomes.count(context.operation, static_cast<std::uint16_t>(error.code));
  effects_.send(context.session, context.request_id, error_answer(error));
}

void EngineServices::answer(Parked& parked, Answer&& answer) {
  answer.counts = Answer::Counts::as_parked;
  counted_.tallies.count_wait(parked.operation, now() - parked.received);
  const TakenParked taken = take(parked);
  deliver(parked.session, parked.request_id, parked.operation, std::move(answer));
}

void EngineServices::fail(Parked& parked, Error error) {
  if (error.operation.empty()) error.operation = wire::name_of(parked.operation);
  if (error.decided_by.empty()) error.decided_by = "server";
  if (error.decided_by_timeout == Duration::zero()) error.decided_by_timeout = parked.timeout;
  error.elapsed = now() - parked.received;
  log_limit(parked.session, error);
  answer(parked, error_answer(error));
}

Payload EngineServices::retain(Quota& quota, std::string_view bytes, Charging charging) {
  auto& [received, retained] = request_memory_;
  if (received != nullptr && received->is_mostly(bytes)) {
    retained = received->take_over(quota, bytes, charging);
    return retained;
  }
  const bool may_be_retained = retained != nullptr || (received != nullptr && received->has(bytes));
  if (effects_.may_copy(bytes.size()) || !may_be_retained) {
    effects_.spend_on_copying(bytes.size());
    return make_payload(quota, bytes, charging);
  }
  // All that the request brought is retained until the copy is made.
  if (retained == nullptr) retained = received->take_over(memory_.all, received->all(), charging);
  if (retained == nullptr) return nullptr;
  std::vector<CopyPart> parts(1);
  parts[0].value = part_of(retained, bytes);
  return effects_.long_copies().begin(quota, std::move(parts), charging);
}

void EngineServices::deliver(Session& session, std::uint64_t request_id, wire::Operation operation,
                             Answer&& answer) {
  if (session.is_guest) return send_to_guest(effects_, session, request_id, std::move(answer));
  counted_.tallies.outcomes.count(operation, answer.code);
  if (session.ended) return;
  const bool is_kept = wire::changes_state(operation) ||
                       !std::holds_alternative<std::monostate>(answer.on_acknowledged);
  if (!is_kept) return effects_.send(session, request_id, std::move(answer));
  own_value(answer, session.account.quota);
  if (answer.taken != nullptr && answer.counts == Answer::Counts::as_answer) {
    answer.counts = Answer::Counts::as_taken;
  }
  const Answer& kept = cache_.keep(session, request_id, std::move(answer));
  effects_.send_copy(session, request_id, kept);
}

}  // namespace muster::core
