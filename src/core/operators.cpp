#include "core/operators.h"

#include <string>
#include <utility>
#include <vector>

#include "core/session/failure.h"
#include "core/session/reply.h"

namespace muster::core {
namespace {

/// "1 key", "2 keys".
std::string counted(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// Of a namespace that `viewer` wants to drop; it names a process that he may know of.
Error in_use_error(const NameSpace& name_space, const Session& viewer) {
  std::string text = "namespace " + quoted_text(name_space.name) + " is in use by " +
                     counted(name_space.sessions, "session");
  for (const auto& [id, session] : name_space.sessions_by_id) {
    if (!viewer.may_see(session->tenant())) continue;
    text += ", the first of " + describe(session->process);
    break;
  }
  return failure(ErrorCode::busy, text + ", and has " + counted(name_space.groups.size(), "group") +
                                      "; end the sessions, or declare their processes dead");
}

/// That one, if `viewer` may know of it, in its namespace.
std::vector<Session*> of_number(std::uint64_t id, const Session& viewer) {
  const auto& by_id = viewer.name_space.sessions_by_id;
  const auto found = by_id.find(id);
  if (found == by_id.end() || !viewer.may_see(found->second->tenant())) return {};
  return {found->second};
}

}  // namespace

void Operators::ask(const RequestContext& context, const wire::ReportDead& request) {
  const Session& reporter = context.session;
  if (request.process == reporter.process.id) {
    return services_.fail(context,
                          failure(ErrorCode::invalid_argument,
                                  "a process cannot report itself dead; close the store instead"));
  }
  const std::vector<Session*> reported = sessions_.of_process(request.process, reporter);
  if (reported.empty()) {
    return services_.fail(context,
                          failure(ErrorCode::not_found, "process " + to_string(request.process) +
                                                            " has no session in this namespace"));
  }
  services_.answer(context, Answer{});
  Error why = failure(ErrorCode::fenced, "declared dead: " + quoted_text(request.reason));
  const std::string by = describe(reporter.process);
  std::string who = by;
  if (reporter.grant != nullptr) who += " as " + to_string(reporter.grant->identity);
  for (Session* session : reported) {
    services_.effects().log(LogLevel::warning,
                            "session " + std::to_string(session->id) + " of " +
                                describe(session->process) + " was declared dead by " + who + ": " +
                                quoted_text(request.reason),
                            reporter.account.unit.name);
    why.decided_by = session->may_see(reporter.tenant()) ? by : "an operator";
    sessions_.end(*session, why, LossCause::reported);
  }
}

/// Nobody may be in it: whoever is would find the keys gone that it has written.
void Operators::ask(const RequestContext& context, const wire::DropNameSpace& request) {
  const std::string name = quoted_text(request.name);
  const Session& supervisor = context.session;
  NameSpace* const found = name_spaces_.find(request.name);
  if (found == &supervisor.name_space) {
    return services_.fail(context,
                          failure(ErrorCode::invalid_argument,
                                  "this store is in namespace " + name +
                                      " itself; drop it with one that is in another namespace"));
  }
  const bool is_there = found != nullptr && supervisor.may_see_name_space(request.name) &&
                        !found->groups.has_others(supervisor);
  if (!is_there) {
    return services_.fail(context, failure(ErrorCode::not_found, "there is no namespace " + name));
  }
  if (found->sessions != 0) return services_.fail(context, in_use_error(*found, supervisor));
  const std::uint64_t keys_count = name_spaces_.drop(*found);
  services_.effects().log(LogLevel::info,
                          "namespace " + name + " was dropped with " + counted(keys_count, "key") +
                              " by " + describe(supervisor.process),
                          supervisor.account.unit.name);
  services_.answer(context, answer_of(wire::NumberReply{static_cast<std::int64_t>(keys_count)}));
}

/// As `report_dead`, of a process that lives: its next call fails, and its groups hear of a loss.
void Operators::ask(const RequestContext& context, const wire::EndSession& request) {
  const Session& asking = context.session;
  const bool is_process = request.session == 0;
  const std::vector<Session*> meant = is_process ? sessions_.of_process(request.process, asking)
                                                 : of_number(request.session, asking);
  const std::string name = is_process ? "process " + to_string(request.process)
                                      : "session " + std::to_string(request.session);
  if (meant.empty()) {
    return services_.fail(context,
                          failure(ErrorCode::not_found, name + " is not in this namespace"));
  }
  for (const Session* session : meant) {
    if (session != &asking) continue;
    return services_.fail(context, failure(ErrorCode::invalid_argument,
                                           name + " is the one that asks; close its store"));
  }
  services_.answer(context, answer_of(wire::NumberReply{static_cast<std::int64_t>(meant.size())}));
  Error why = failure(ErrorCode::fenced, "ended by an operator");
  if (!request.reason.empty()) why.detail += ": " + quoted_text(request.reason);
  for (Session* session : meant) {
    services_.effects().log(LogLevel::warning,
                            "session " + std::to_string(session->id) + " of " +
                                describe(session->process) + " was ended by " + who_is(asking) +
                                ": " + quoted_text(request.reason),
                            asking.account.unit.name);
    why.decided_by = session->may_see(asking.tenant()) ? describe(asking.process) : "an operator";
    sessions_.end(*session, why, LossCause::reported, Fencing::ended);
  }
}

}  // namespace muster::core
