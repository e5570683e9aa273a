#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/engine.h"
#include "core/keys/taken.h"
#include "core/reply_bytes.h"
#include "core/session/failure.h"
#include "core/session/reply.h"
#include "wire/operation_table.h"

// A request's life: what it acknowledges is forgotten -> is there room for its reply? else it comes
// again -> has it come before (a resend after a reconnect)? then it waits where it waited, or gets
// the answer that it got -> is it allowed, and may its answer be kept? -> the table or the groups
// answer, now or later (parked) -> what changed something stays in the cache until the client has
// acknowledged the answer.

namespace muster::core {
namespace {

using wire::Operation;

constexpr const char* blind = "a request before the echo of the server's hello";

/// To a session that has not the right: its grant has not, or its role.
std::string why_denied(const Session& session, Operation operation) {
  const wire::Right right = wire::facts_of(operation).right;
  if (session.grant != nullptr && !session.grant->rights.has(right)) {
    return to_string(session.grant->identity) + " has not the right \"" +
           to_string(auth::Rights{right}) +
           "\"; ask who operates the server for a credential line that has it";
  }
  if (operation == wire::operation<wire::ReportDead>) {
    return "only a supervisor may declare a process dead; connect as one";
  }
  if (operation == wire::operation<wire::DropNameSpace>) {
    return "only a supervisor may drop a namespace; connect as one";
  }
  if (operation == wire::operation<wire::EndSession>) {
    return "only a supervisor may end sessions; connect as one";
  }
  if (wire::facts_of(operation).right == wire::Right::admin) {
    return "only a supervisor may change the server; connect as one";
  }
  return "an observer cannot take part in groups; connect as a client";
}

Error denial(EngineServices& services, const RequestContext& context) {
  const Session& session = context.session;
  if (session.grant != nullptr) {
    services.effects().log(LogLevel::warning,
                           to_string(session.grant->identity) + " was refused " +
                               std::string(wire::name_of(context.operation)) + " in session " +
                               std::to_string(session.id) + " of " + describe(session.process),
                           session.account.unit.name);
  }
  return failure(ErrorCode::permission_denied, why_denied(session, context.operation));
}

std::optional<Error> too_many_requests(Tallies& tallies, Unit& unit, Instant now) {
  const std::uint32_t per_second = unit.limits.requests_per_second;
  if (unit.requests.take(now, per_second)) return std::nullopt;
  return exhausted(tallies, Limit::identity_requests,
                   unit.name +
                       " has sent as many requests in this second as its credential line allows; "
                       "send fewer",
                   per_second, per_second);
}

constexpr std::uint64_t kept_answer_bytes = 256;  ///< with a short head, as nearly all have
constexpr std::size_t ids_per_step = 8;           ///< that are looked for and not there

/// Answers to parked requests count against the parked ones: they come in bursts that the client
/// cannot foresee, such as the release of many barriers.
std::size_t cached_count_of(const Session& session) {
  return session.requests.unacknowledged.size() - session.requests.cached_parked_count -
         session.requests.cached_taken_count;
}

bool takes(Operation operation) {
  return operation == wire::operation<wire::Take> || operation == wire::operation<wire::QueuePop>;
}

std::uint64_t bytes_to_keep(Operation operation) {
  const bool has_value = takes(operation) || operation == wire::operation<wire::CompareSet>;
  return kept_answer_bytes + (has_value ? shared_value_bytes_min : 0) +
         (takes(operation) ? taken_record_bytes : 0);
}

/// Shares do not count for what frees memory, so that that goes on.
const Quota& quota_to_keep(EngineServices& services, const RequestContext& context) {
  const bool frees = wire::facts_of(context.operation).memory == wire::Memory::frees;
  return frees ? services.memory().all : context.session.account.quota;
}

/// Before anything is done: the answer is charged in any case. One answer of each session may be
/// kept whatever others have. An answer to a parked request takes the place of its record.
bool has_memory_to_keep(EngineServices& services, const RequestContext& context) {
  if (services.memory().all.used_reserve_bytes() == 0) return true;
  if (context.session.requests.unacknowledged.size() == 0) return true;
  return quota_to_keep(services, context).has_reserve(bytes_to_keep(context.operation));
}

/// It ends before this request does, with its value, or surely without. A client that does not have
/// the value yet gives it back; an older one takes it.
void cancel_take(EngineServices& services, const RequestContext& context,
                 const wire::CancelTake& request) {
  const auto found = context.session.requests.parked.find(request.request);
  const bool waits =
      found != context.session.requests.parked.end() && takes(found->second.operation);
  if (waits) services.fail(found->second, failure(ErrorCode::cancelled, ""));
  const bool given_back =
      request.gives_back && services.give_back(context.session, request.request);
  services.answer(context, answer_of(wire::CancelTakeReply{given_back}));
}

}  // namespace

/// Hands a request to the room that it is for.
struct Engine::Dispatch {
  Engine& engine;
  const RequestContext& context;
  Table& table = context.session.name_space.table;
  Groups& groups = context.session.name_space.groups;
  Inspector& inspector = engine.inspector_;

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
  void operator()(const wire::QueuePush& request) const { table.queue_push(context, request); }
  void operator()(const wire::QueuePop& request) const { table.queue_pop(context, request); }
  void operator()(const wire::QueueLength& request) const { table.queue_length(context, request); }
  void operator()(const wire::CancelTake& request) const {
    cancel_take(engine.services_, context, request);
  }
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
  void operator()(const wire::Interrupt& request) const { groups.interrupt(context, request); }
  void operator()(const wire::Send& request) const { groups.send(context, request); }
  void operator()(const wire::Receive& request) const { groups.receive(context, request); }
  void operator()(const wire::ExpireData& request) const { groups.expire_data(context, request); }
  void operator()(const wire::Recover& request) const { groups.recover(context, request); }
  void operator()(const wire::Groups& request) const { groups.list(context, request); }
  void operator()(const wire::InspectGroup& request) const { groups.inspect(context, request); }
  /// What operators ask and change, but for groups.
  template <class Request>
  void operator()(const Request& request) const {
    if constexpr (requires(Operators & operators) { operators.ask(context, request); }) {
      engine.operators_.ask(context, request);
    } else {
      inspector.tell(context, request);
    }
  }
};

void Engine::on(const Requested& event) {
  const wire::Request& request = *event.request;
  Session* const session = sessions_.connections().session_on(event.connection);
  if (session == nullptr) return turn_away(event);
  if (!session->has_echoed) return sessions_.break_off(*session, blind);
  acknowledge(*session, request.acknowledged);
  const ReplyRoom& room = services_.memory().room;
  if (!room.is_unused(event.unsent)) {
    const std::uint64_t bytes = bytes_of_reply(services_.options(), *session, request);
    // An operator that takes its replies waits for nobody.
    const bool is_prompt = session->is_operator() && event.unsent.of_peer_bytes == 0;
    if (!is_prompt && !room.has(bytes, event.unsent)) {
      return services_.effects().add(Postpone{event.connection, bytes});
    }
  }
  sessions_.heard(*session);
  sessions_.requested(*session);
  const RequestContext context{*session, request.id, wire::operation_of(request.body),
                               std::clamp(request.timeout, Duration::zero(), base::timeout_max),
                               services_.now()};
  const bool is_repeated = request.id <= session->requests.last_id;
  if (!is_to_execute(context, request.timeout)) return;
  if (session->keys.offer != nullptr) session->name_space.table.end_offer(*session);
  services_.set_request_memory(event.memory);
  inspector_.count_request(request.body.index());
  if (!session->rights.has(wire::facts_of(context.operation).right)) return deny(context);
  // A membership always ends when its handle does: else the others would wait for a rank in vain.
  const auto* const leave = std::get_if<wire::Leave>(&request.body);
  const bool ends_membership =
      leave != nullptr && session->name_space.groups.may_leave(*session, leave->epoch);
  auto why = ends_membership ? std::nullopt : refusal(context, is_repeated);
  if (why) return services_.turn_away(context, *std::move(why));
  static_assert(wire::every_request([]<class Body>(std::type_identity<Body>) {
                  return std::invocable<const Dispatch&, const Body&>;
                }),
                "every operation has its function in Dispatch");
  std::visit(Dispatch{*this, context}, request.body);
}

/// Ids ascend, and a client that has come back repeats in that order what has no reply yet. So an
/// id that is not new is that of a request that waits, or whose answer is kept, or of which nothing
/// is known any more: it only read, or was refused for want of room, or its client has acknowledged
/// or abandoned the answer. None of these may change anything now.
///
/// timeout  as the client gave it
bool Engine::is_to_execute(const RequestContext& context, Duration timeout) {
  Session& session = context.session;
  const std::uint64_t id = context.request_id;
  if (id > session.requests.last_id) {
    session.requests.last_id = session.requests.last_id_here = id;
    return true;
  }
  const bool is_in_order = id > session.requests.last_id_here;
  if (is_in_order) session.requests.last_id_here = id;
  if (services_.repeats(session, id, timeout)) return false;
  if (!is_in_order) {
    sessions_.break_off(session, "the id of a request is not above those before it");
    return false;
  }
  if (!wire::changes_state(context.operation)) return true;
  const wire::Right right = wire::facts_of(context.operation).right;
  if (!session.rights.has(right)) return true;  // it is denied, as before
  services_.turn_away(context, failure(ErrorCode::resource_exhausted,
                                       "a request of this id was refused before, or its reply was "
                                       "acknowledged or abandoned; ask under a new id"));
  return false;
}

/// The connection has no session, or has none any more: then its last frames are answered.
void Engine::turn_away(const Requested& event) {
  const Error* const reason = sessions_.connections().why_closed(event.connection);
  if (reason == nullptr) return static_cast<void>(sessions_.speaker(event.connection, "a request"));
  Answer answer = error_answer(*reason);
  services_.effects().add(SendReply{event.connection,
                                    event.request->id,
                                    answer.code,
                                    false,
                                    std::move(answer.head),
                                    {},
                                    nullptr});
}

/// The denial of what changes something is kept as any answer is, so that its repetition gets it
/// although the session may have the right by then. Without room for that it is only sent.
void Engine::deny(const RequestContext& context) {
  const Session& session = context.session;
  const wire::ServerLimits& limits = services_.options().limits;
  const bool has_room = cached_count_of(session) < limits.cached_results_max &&
                        session.requests.cached_bytes < limits.cached_result_bytes_max &&
                        has_memory_to_keep(services_, context);
  Error why = denial(services_, context);
  if (has_room) return services_.fail(context, std::move(why));
  services_.turn_away(context, std::move(why));
}

std::optional<Error> Engine::refusal(const RequestContext& context, bool is_repeated) {
  const Session& session = context.session;
  const Operation operation = context.operation;
  if (session.counts_requests()) {
    auto why =
        too_many_requests(services_.counted().tallies, session.account.unit, services_.now());
    if (why) return why;
  }
  if (!wire::is_kept(operation)) return std::nullopt;
  const wire::ServerLimits& limits = services_.options().limits;
  const std::size_t cached_count = cached_count_of(session);
  // A client repeats a receive that waited, and ended with an error that was not kept, before it
  // can acknowledge the replies to later requests.
  const bool has_room_to_repeat =
      is_repeated && session.requests.unacknowledged.size() <
                         std::size_t{limits.cached_results_max} + limits.parked_waits_max;
  if (cached_count >= limits.cached_results_max && !has_room_to_repeat) {
    return exhausted(services_.counted().tallies, Limit::cached_results,
                     "cached_results_max answers are not acknowledged yet", cached_count,
                     limits.cached_results_max);
  }
  // What clients have taken and do not have yet counts by itself: they acknowledge it later.
  const std::uint64_t taken_max =
      std::uint64_t{limits.cached_results_max} + limits.parked_waits_max;
  if (session.requests.cached_taken_count >= taken_max && takes(operation)) {
    return exhausted(
        services_.counted().tallies, Limit::cached_results,
        "cached_results_max and parked_waits_max takes and pops are not acknowledged yet",
        session.requests.cached_taken_count, taken_max);
  }
  if (session.requests.cached_bytes >= limits.cached_result_bytes_max) {
    return exhausted(services_.counted().tallies, Limit::cached_result_bytes,
                     "answers of cached_result_bytes_max bytes are not acknowledged yet",
                     session.requests.cached_bytes, limits.cached_result_bytes_max);
  }
  if (has_memory_to_keep(services_, context)) return std::nullopt;
  return memory_exhausted(quota_to_keep(services_, context), bytes_to_keep(operation));
}

void Engine::on(const Acknowledged& event) {
  Session* session = sessions_.speaker(event.connection, "an acknowledgement");
  if (session != nullptr) acknowledge(*session, *event.request_ids);
}

void Engine::on(const Heartbeat& event) {
  Session* session = sessions_.speaker(event.connection, "a heartbeat");
  if (session == nullptr) return;
  if (event.acknowledged != nullptr) acknowledge(*session, *event.acknowledged);
  services_.effects().add(SendHeartbeatReply{event.connection, event.number});
}

void Engine::acknowledge(Session& session, const std::vector<std::uint64_t>& request_ids) {
  services_.effects().spend(request_ids.size() / ids_per_step);
  for (const std::uint64_t id : request_ids) {
    const auto set_free = services_.cache().forget(session, id);
    if (!set_free) continue;
    Groups& groups = session.name_space.groups;
    if (const auto* object = std::get_if<ReceivedObject>(&*set_free)) {
      groups.acknowledged(session, *object);
    } else if (const auto* round = std::get_if<RoundPart>(&*set_free)) {
      groups.acknowledged(session, *round);
    } else if (const auto* membership = std::get_if<Membership>(&*set_free)) {
      groups.acknowledged(session, *membership);
    }
  }
}

void Engine::on(const Abandoned& event) {
  Session* session = sessions_.speaker(event.connection, "an abandon");
  if (session == nullptr) return;
  services_.effects().spend(event.request_ids->size());
  for (const std::uint64_t id : *event.request_ids) services_.abandon_wait(*session, id);
  // What these give back, and an item that was reserved, is for none of those.
  if (session->keys.offer != nullptr) session->name_space.table.end_offer(*session);
  for (const std::uint64_t id : *event.request_ids) {
    const auto answered = services_.abandon_answer(*session, id);
    if (!answered) continue;
    const auto* const membership = std::get_if<Membership>(&*answered);
    if (membership != nullptr) session->name_space.groups.abandoned(*session, *membership);
  }
}

}  // namespace muster::core
