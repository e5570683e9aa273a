#include <algorithm>
#include <deque>
#include <string>

#include "core/engine.h"
#include "core/session/reply.h"
#include "wire/operation_table.h"

// What operators are told of sessions and of what they wait for.

namespace muster::core {

void Engine::send_sessions(const RequestContext& context, const wire::Sessions& request) {
  wire::SessionsReply reply;
  for (const Session* session : sessions_.after(context.session.name_space, request.after)) {
    if (reply.sessions.size() == wire::list_entries_max) break;
    wire::SessionEntry entry;
    entry.id = session->id;
    entry.process = session->process;
    entry.connected = session->connection != 0;
    entry.silence = services_.silence(*session);
    entry.groups = static_cast<std::uint32_t>(session->members.size());
    entry.waiting = static_cast<std::uint32_t>(session->parked.size());
    reply.sessions.push_back(std::move(entry));
  }
  services_.answer(context, answer_of(reply));
}

/// A page ends with a session, so that the next one can begin behind it. Of one session so many are
/// told of, those that have waited longest.
void Engine::send_waiters(const RequestContext& context, const wire::Waiters& request) {
  wire::WaitersReply reply;
  std::deque<std::string> targets;  // viewed by the reply
  for (const Session* session : sessions_.after(context.session.name_space, request.after)) {
    if (reply.waiters.size() >= wire::list_entries_max) break;
    const std::size_t first = reply.waiters.size();
    for (const auto& [id, parked] : session->parked) {
      reply.waiters.push_back({session->id, session->process, wire::name_of(parked.operation),
                               targets.emplace_back(parked.wait->target()),
                               services_.now() - parked.received,
                               parked.deadline - services_.now()});
    }
    std::sort(reply.waiters.begin() + static_cast<std::ptrdiff_t>(first), reply.waiters.end(),
              [](const auto& left, const auto& right) { return left.age > right.age; });
    reply.waiters.resize(
        std::min<std::size_t>(reply.waiters.size(), first + wire::list_entries_max));
  }
  services_.answer(context, answer_of(reply));
}

}  // namespace muster::core
