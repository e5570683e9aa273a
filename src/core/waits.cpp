#include "core/waits.h"

#include "core/table_state.h"

namespace muster::core {

void WaitLink::join(WaitLink& head) {
  previous = head.previous;
  next = &head;
  previous->next = this;
  head.previous = this;
}

void WaitLink::leave() {
  previous->next = next;
  next->previous = previous;
  previous = next = this;
}

KeyWait::KeyWait(TableState& its_table, Parked& its_parked, std::size_t key_count)
    : table(its_table), parked(its_parked), links(key_count), number(++its_table.last_wait) {}

KeyWait::~KeyWait() {
  for (std::size_t index = 0; index < standing_count; ++index) {
    WaitLink& link = links[index];
    link.leave();
    Entry& entry = *link.entry;
    if (entry.waiting->readers.alone() && entry.waiting->takers.alone()) entry.waiting.reset();
    table.drop_if_unused(entry);
  }
  table.quota.release(charged_bytes(links.size()));
}

void KeyWait::stand_at(Entry& entry) {
  if (entry.waiting == nullptr) entry.waiting = std::make_unique<Waiting>();
  WaitLink& link = links[standing_count++];
  link.wait = this;
  link.entry = &entry;
  const bool takes = parked.operation == wire::Operation::take;
  link.join(takes ? entry.waiting->takers : entry.waiting->readers);
  if (entry.value == nullptr) ++missing_count;
}

}  // namespace muster::core
