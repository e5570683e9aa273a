#include "core/waits.h"

#include "core/table_state.h"
#include "wire/operation_table.h"

namespace muster::core {

KeyWait::KeyWait(TableState& its_table, Parked& its_parked, std::size_t key_count)
    : table(its_table),
      parked(its_parked),
      links(&only_, 1),
      number(++its_table.last_wait),
      several_(key_count == 1 ? nullptr : std::make_unique<WaitLink[]>(key_count)) {
  if (several_ != nullptr) links = {several_.get(), key_count};
}

KeyWait::~KeyWait() {
  for (std::size_t index = 0; index < standing_count; ++index) {
    WaitLink& link = links[index];
    link.at_key.leave();
    table.drop_if_unused(*link.entry);
  }
  table.quota.release(charged_bytes(links.size()));
}

void KeyWait::stand_at(Entry& entry) {
  WaitLink& link = links[standing_count++];
  link.wait = this;
  link.entry = &entry;
  Waiting& waiting = entry.block.extras()->waiting;
  const bool takes = parked.operation == wire::operation<wire::Take>;
  (takes ? waiting.takers : waiting.readers).append(link.at_key);
  if (!entry.has_value) ++missing_count;
}

}  // namespace muster::core
