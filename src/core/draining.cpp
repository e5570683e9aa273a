#include "core/draining.h"

#include <utility>

#include "core/session/failure.h"
#include "core/session/reply.h"

namespace muster::core {
namespace {

constexpr const char* nothing_to_cancel = "the server is not being drained";

std::string text_of_reason(std::string_view reason) {
  return reason.empty() ? "an operator wants it so" : quoted_text(reason);
}

}  // namespace

void Draining::ask(const RequestContext& context, const wire::Drain& request) {
  const Session& session = context.session;
  const std::string& unit = session.account.unit.name;
  if (request.cancels) {
    if (!services_.counted().is_draining) {
      return services_.fail(context, failure(ErrorCode::not_found, nothing_to_cancel));
    }
    services_.counted().is_draining = is_waiting_ = false;
    timer_.disarm();
    services_.effects().log(LogLevel::warning, "the drain was cancelled by " + who_is(session),
                            unit);
    services_.effects().add(ForHost{Drains{}});
  } else {
    begin(request);
    services_.effects().log(LogLevel::warning,
                            "the server is drained by " + who_is(session) + ": " + reason_, unit);
    services_.effects().add(ForHost{Drains{reason_}});
  }
  const std::uint64_t others_count = users_count() - 1;  // no observer may ask
  services_.answer(context, answer_of(wire::NumberReply{static_cast<std::int64_t>(others_count)}));
}

/// Who comes back, or operates the server, is no newcomer. Of others everything else is wrong first
/// that may be.
std::optional<Error> Draining::refusal(const Hello& event) const {
  const wire::ClientHello& hello = event.hello;
  if (!services_.counted().is_draining || hello.session_id != 0 || hello.role != wire::Role::client)
    return {};
  if (event.grant != nullptr && !event.grant->namespaces.allows(hello.name_space)) return {};
  SessionConnections& connections = sessions_.connections();
  const bool is_fresh = connections.session_on(event.connection) == nullptr &&
                        connections.why_closed(event.connection) == nullptr;
  if (!is_fresh) return {};
  return failure(ErrorCode::unavailable,
                 "the server is being drained and takes no new sessions: " + reason_);
}

std::uint64_t Draining::users_count() const {
  Counts counts;
  sessions_.add_counts(counts);
  return counts.sessions - counts.observers;
}

void Draining::begin(const wire::Drain& request) {
  services_.counted().is_draining = is_waiting_ = true;
  reason_ = text_of_reason(request.reason);
  timer_.disarm();
  if (!request.time_max) return;
  services_.timers().arm(timer_, base::deadline_after(services_.now(), *request.time_max));
}

void Draining::time_is_over() {
  services_.effects().log(LogLevel::warning,
                          "the time of the drain is over; sessions that are still there: " +
                              std::to_string(users_count()));
  end();
}

void Draining::end() {
  is_waiting_ = false;
  timer_.disarm();
  const std::string told = "the server was drained: " + reason_;
  services_.effects().log(LogLevel::info, told);
  services_.effects().add(ForHost{Drained{told}});
}

}  // namespace muster::core
