#include "oracle.h"
#include "witness.h"

// Nothing is done without its right, and nothing is refused that has it. Which right an operation
// needs is told as docs/protocol.md does, and not as the table of operations does.

namespace muster::sim {

namespace {

wire::Right right_for(wire::Operation operation) {
  switch (operation) {
    case wire::operation<wire::Get>:
    case wire::operation<wire::Exists>:
    case wire::operation<wire::Wait>:
    case wire::operation<wire::MultiGet>:
    case wire::operation<wire::List>:
    case wire::operation<wire::QueueLength>: return wire::Right::read;
    case wire::operation<wire::QueuePush>:
    case wire::operation<wire::QueuePop>: return wire::Right::write;
    case wire::operation<wire::ReportDead>:
    case wire::operation<wire::EndSession>:
    case wire::operation<wire::DropNameSpace>: return wire::Right::supervise;
    default: break;
  }
  if (operation >= wire::operation<wire::Status>) return wire::Right::observe;
  return operation >= wire::operation<wire::Join> ? wire::Right::join : wire::Right::write;
}

}  // namespace

bool Witness::has_right(const Session& session, wire::Operation operation) {
  const wire::Right right = right_for(operation);
  const bool has_role = (right != wire::Right::join || session.role != wire::Role::observer) &&
                        (right != wire::Right::supervise || session.role == wire::Role::supervisor);
  return has_role && (session.grant == nullptr || session.grant->rights.has(right));
}

void Witness::granted(Connection connection, const core::Hello& hello) {
  Session* const session = session_on(connection);
  if (session == nullptr) return;
  session->role = hello.hello.role;  // the same in each hello of a client
  if (session->grant != nullptr && session->grant->identity != hello.grant->identity) {
    problem("a session was resumed by another identity");
  }
  session->grant = hello.grant;
  if (hello.grant != nullptr && !hello.grant->namespaces.allows(session->name_space)) {
    problem("a session was begun in a namespace that is not allowed");
  }
}

void Witness::regranted(const core::Regrant& event) {
  for (auto& [id, session] : sessions_) {
    for (const auto& [older, newer] : event.grants) {
      if (session.grant != older || older == nullptr) continue;
      session.grant = newer;
      session.is_revoked = newer == nullptr;
      break;
    }
  }
}

/// Nobody waits for what he has no right to, and who was removed has gone.
void Witness::check_rights() {
  std::vector<std::uint64_t> over;
  for (const auto& [id, session] : sessions_) {
    if (session.connection == 0 && session.is_revoked) over.push_back(id);
    if (session.connection == 0) continue;
    if (session.is_revoked) problem("a session goes on whose credential was removed");
    for (const auto& [request, asked] : session.asked) {
      if (!asked.is_open || !asked.is_sure || has_right(session, asked.operation)) continue;
      problem(std::string(wire::name_of(asked.operation)) + " waits without its right");
    }
  }
  for (const std::uint64_t id : over) is_over(id);
  check_losses();
}

/// What was done in time may be told later, also that a right was missing.
void Witness::check_right(const Session& session, const Asked& asked, std::uint16_t code) {
  const bool is_denied = code == static_cast<std::uint16_t>(ErrorCode::permission_denied);
  const bool has = has_right(session, asked.operation);
  const std::string name(wire::name_of(asked.operation));
  if (is_denied && has && !asked.is_repeated)
    problem(name + " is refused, although it has its right");
  const bool was_done_before = asked.is_repeated && asked.had_right;
  if (!is_denied && !has && !was_done_before) problem(name + " is done without its right");
}

}  // namespace muster::sim
