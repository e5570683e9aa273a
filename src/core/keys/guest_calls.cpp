#include "core/keys/guest_calls.h"

#include <utility>
#include <variant>

#include "core/keys/table.h"
#include "core/session/failure.h"
#include "core/session/reply.h"

namespace muster::core {
namespace {

Answer number_answer(std::size_t count) {
  return answer_of(wire::NumberReply{static_cast<std::int64_t>(count)});
}

}  // namespace

/// Whether the key has a value, or an item that is not reserved for another guest.
bool GuestCalls::has_come(std::string_view key) {
  const Spot spot = table_.state_.look(key);
  return spot.has_value() || Queues::free_at(spot.entry) != 0;
}

/// If there is one for him.
void GuestCalls::keep_item(Session& guest, std::string_view key) {
  Entry* const entry = table_.state_.look(key).entry;
  if (Queues::free_at(entry) != 0) table_.state_.queues.offer(*entry, guest);
}

void GuestCalls::ask(const RequestContext& context, const AwaitKeys& request) {
  table_.services_.effects().spend(request.keys.size());
  Table::Keys absent;
  for (const std::string_view key : request.keys) {
    auto error = table_.check_key(key);
    if (error) return table_.services_.fail(context, *std::move(error));
    if (!has_come(key)) absent.push_back(key);
  }
  if (!absent.empty()) return table_.park(context, absent);
  if (request.keys.size() == 1) keep_item(context.session, request.keys.front());
  table_.services_.answer(context, Answer{});
}

void GuestCalls::ask(const RequestContext& context, const AwaitRelease& request) {
  auto error = table_.check_key(request.key);
  if (error) return table_.services_.fail(context, *std::move(error));
  table_.park(context, {request.key});
}

void GuestCalls::ask(const RequestContext& context, const Release& request) {
  Entry* const entry = table_.state_.look(request.key).entry;
  table_.services_.answer(context, Answer{});
  if (entry != nullptr) table_.state_.serving.serve_guests(*entry);
}

void GuestCalls::ask(const RequestContext& context, const CheckKeys& request) {
  table_.services_.effects().spend(request.keys.size());
  bool are_there = true;
  for (const std::string_view key : request.keys) are_there = are_there && has_come(key);
  Answer answer;
  answer.head.assign(1, are_there ? '\1' : '\0');
  table_.services_.answer(context, std::move(answer));
}

void GuestCalls::ask(const RequestContext& context, const CountKeys&) {
  table_.services_.answer(context, number_answer(table_.key_count()));
}

void GuestCalls::ask(const RequestContext& context, const Push& request) {
  table_.queue_push(context, {request.key, request.item});
}

void GuestCalls::ask(const RequestContext& context, const Pop& request) {
  Entry* const entry = table_.state_.look(request.key).entry;
  const bool may_pop = Queues::may_pop(entry, context.session);
  Answer answer = number_answer(may_pop ? Queues::size_at(entry) : 0);
  if (may_pop) {
    answer.tail = table_.state_.queues.pop(*entry).item;
    answer.owns_tail = true;
  }
  table_.services_.answer(context, std::move(answer));
}

void GuestCalls::ask(const RequestContext& context, const CountQueued& request) {
  const Entry* const entry = table_.state_.look(request.key).entry;
  table_.services_.answer(context, number_answer(Queues::size_at(entry)));
}

std::uint64_t GuestCalls::bytes_of_answer(const GuestRequest& request) const {
  const auto* const pop = std::get_if<Pop>(&request);
  if (pop == nullptr) return 0;
  const TableState& state = table_.state_;
  return Queues::first_bytes_at(state.index.find(pop->key, state.hash_of(pop->key)));
}

}  // namespace muster::core
