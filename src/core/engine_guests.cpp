#include <variant>

#include "core/engine.h"
#include "core/keys/guest_calls.h"
#include "core/reply_bytes.h"
#include "wire/operation_table.h"

namespace muster::core {

namespace {

/// Not the second half of a barrier: who comes between it and the first would be missed.
bool may_be_postponed(const GuestRequest& request) {
  return !std::holds_alternative<AwaitRelease>(request) &&
         !std::holds_alternative<Release>(request);
}

}  // namespace

/// An item that is kept for the guest is so until it pops, or asks for anything else. What it waits
/// for ends with its connection: no time is set.
void Engine::on(const RequestedByGuest& event) {
  Session* const session = sessions_.connections().session_on(event.connection);
  if (session == nullptr || !session->is_guest) return;
  GuestCalls calls(session->name_space.table);
  const std::uint64_t bytes = short_reply_bytes + calls.bytes_of_answer(*event.request);
  const ReplyRoom& room = services_.memory().room;
  const bool has_room = room.is_unused(event.unsent) || room.has(bytes, event.unsent);
  if (!has_room && may_be_postponed(*event.request)) {
    return services_.effects().add(Postpone{event.connection, bytes});
  }
  sessions_.heard(*session);
  session->requests.last_id = session->requests.last_id_here = event.request_id;
  inspector_.count_guest_request(event.request->index());
  const RequestContext context{*session, event.request_id, wire::operation<wire::Wait>,
                               base::timeout_max, services_.now()};
  const bool pops = std::holds_alternative<Pop>(*event.request);
  Table& table = session->name_space.table;
  if (!pops && session->keys.offer != nullptr) table.end_offer(*session);
  std::visit([&](const auto& request) { calls.ask(context, request); }, *event.request);
  if (pops && session->keys.offer != nullptr) table.end_offer(*session);
}

}  // namespace muster::core
