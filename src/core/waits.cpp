#include "core/waits.h"

#include "core/table_state.h"

namespace muster::core {

KeyWait::KeyWait(TableState& its_table, Parked& its_parked, std::size_t key_count)
    : table(its_table), parked(its_parked), links(key_count), number(++its_table.last_wait) {}

KeyWait::~KeyWait() {
  for (std::size_t index = 0; index < standing_count; ++index) {
    WaitLink& link = links[index];
    link.at_key.leave();
    Entry& entry = *link.entry;
    if (entry.waiting->readers.empty() && entry.waiting->takers.empty()) entry.waiting.reset();
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
  (takes ? entry.waiting->takers : entry.waiting->readers).append(link.at_key);
  if (entry.value == nullptr) ++missing_count;
}

}  // namespace muster::core
