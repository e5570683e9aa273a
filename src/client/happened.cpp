// What the server refuses was not done, and what was not sent cannot be. All else may have been.

#include "client/happened.h"

#include "base/reading_calls.h"
#include "wire/operation_table.h"

namespace muster::client {
namespace {

consteval bool agrees_with_operations() {
  for (const wire::OperationFacts& facts : wire::operation_facts) {
    if (facts.name == "receive") continue;  // of `recv_obj`
    if (base::only_reads(facts.name) == wire::changes_state(facts.number)) return false;
  }
  return true;
}
static_assert(agrees_with_operations(),
              "a call that is named as an operation changes something if that does");

/// The object of a round has expired: the round itself was decided, and is done.
bool is_refusal(const Error& error, protocol::Fate fate) {
  return fate == protocol::Fate::answered && error.code != ErrorCode::expired;
}

}  // namespace

void tell_happened(Error& error, std::string_view operation, protocol::Fate fate) {
  error.happened = Happened::unsaid;
  if (base::only_reads(operation)) return;
  // Busy: a handle of the store's own is in the way, and the server has changed nothing.
  const bool is_surely_not =
      fate == protocol::Fate::unsent || is_refusal(error, fate) || error.code == ErrorCode::busy;
  error.happened = is_surely_not ? Happened::no : Happened::maybe;
}

}  // namespace muster::client
