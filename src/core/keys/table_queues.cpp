#include "core/keys/table.h"
#include "core/keys/taken.h"
#include "core/session/failure.h"
#include "core/session/reply.h"

// The table's requests on queues, of which guests ask the first by this, too. A key may have a
// queue next to its value; neither knows of the other. An item's life: it is pushed -> it is for
// the first of those that wait: a pop is answered with it; a guest is notified, and the item is
// reserved for it until its next request or until the grace is over -> it is popped.

namespace muster::core {
namespace {

Answer count_answer(std::size_t count) {
  return answer_of(wire::NumberReply{static_cast<std::int64_t>(count)});
}

}  // namespace

void Table::queue_push(const RequestContext& context, const wire::QueuePush& request) {
  std::optional<Error> error = check_key(request.key);
  if (!error) error = check_value(request.key, request.item.size());
  if (error) return services_.fail(context, *std::move(error));
  Account& payer = context.session.account;
  Payload item = services_.retain(payer.quota, request.item, Charging::normal);
  Entry* const entry =
      item == nullptr ? nullptr : state_.make_place(payer, request.key, Charging::normal);
  if (entry == nullptr) {
    const std::uint64_t refused_bytes =
        request.key.size() + request.item.size() + entry_bytes + extras_bytes;
    return services_.fail(context, memory_exhausted(payer.quota, refused_bytes));
  }
  const std::size_t count = state_.queues.push(*entry, std::move(item));
  services_.answer(context, count_answer(count));
  state_.serving.serve_queue(*entry);
}

void Table::queue_pop(const RequestContext& context, const wire::QueuePop& request) {
  const std::string_view key = request.key;
  if (auto error = check_key(key)) return services_.fail(context, *std::move(error));
  Entry* const entry = state_.look(key).entry;
  if (Queues::free_at(entry) != 0) {
    return services_.answer(context, pop_answer(state_, context.session.account, *entry));
  }
  if (context.timeout > Duration::zero()) return park(context, {key});
  services_.fail(context, no_item_error(ErrorCode::not_found, key, context.timeout));
}

void Table::queue_length(const RequestContext& context, const wire::QueueLength& request) {
  if (auto error = check_key(request.key)) return services_.fail(context, *std::move(error));
  services_.answer(context, count_answer(Queues::size_at(state_.look(request.key).entry)));
}

void Table::end_offer(Session& guest) {
  Entry* const entry = Queues::end_offer(guest);
  if (entry != nullptr) state_.serving.serve_queue(*entry);
}

}  // namespace muster::core
