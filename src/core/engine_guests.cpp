#include <variant>

#include "core/engine.h"
#include "core/keys/guest_calls.h"
#include "core/reply_bytes.h"
#include "wire/operation_table.h"

namespace muster::core {

/// What it waits for ends with its connection: no time is set.
void Engine::on(const RequestedByGuest& event) {
  Session* const session = sessions_.connections().session_on(event.connection);
  if (session == nullptr || !session->is_guest) return;
  sessions_.heard(*session);
  GuestCalls calls(session->name_space.table);
  const std::uint64_t bytes = short_reply_bytes + calls.bytes_of_answer(*event.request);
  const ReplyRoom& room = services_.memory().room;
  if (!room.is_unused(event.unsent) && !room.has(bytes, event.unsent)) {
    return services_.effects().add(Postpone{event.connection, bytes});
  }
  session->last_request_id = session->last_id_here = event.request_id;
  const RequestContext context{*session, event.request_id, wire::operation<wire::Wait>,
                               base::timeout_max, services_.now()};
  std::visit([&](const auto& request) { calls.ask(context, request); }, *event.request);
}

}  // namespace muster::core
