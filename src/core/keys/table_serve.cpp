#include <algorithm>
#include <vector>

#include "core/keys/table_state.h"
#include "core/keys/value_answers.h"
#include "wire/operation_table.h"

// How those are served who waited for keys that have just come. Several may read one value, and
// borrow it until the replies are put together; when somebody takes it too, and it goes at once,
// they share it.

namespace muster::core {

bool TableState::complete(KeyWait& wait) {
  for (WaitLink& link : wait.links) {
    Entry& entry = *link.entry;
    if (entry.has_value && !entry.present_at(services.now())) remove(entry);
  }
  return wait.missing_count == 0;
}

void TableState::serve(std::span<Entry* const> appeared) {
  for (Entry* entry : appeared) {
    const KeyExtras* const extras = entry->block.extras();
    if (extras == nullptr) continue;
    if (!extras->waiting.readers.empty() && !extras->waiting.takers.empty()) share_value(*entry);
  }
  serve_readers(appeared);
  for (Entry* entry : appeared) serve_one_taker(*entry);
}

void TableState::share_value(Entry& entry) {
  if (entry.block.is_shared()) return;
  const Account& account = accounts[entry.account];
  Quota& quota = quota_of(entry);
  const NewValue value{{}, {}, make_payload(quota, entry.value(), Charging::always)};
  replace_block(entry, account,
                make_charged(quota, entry.key(), value, Block::Extras::room, Charging::always));
}

void TableState::serve_readers(std::span<Entry* const> appeared) {
  std::vector<KeyWait*> ready;
  for (Entry* entry : appeared) {
    const KeyExtras* const extras = entry->block.extras();
    if (extras == nullptr) continue;
    for (const WaitLink& link : extras->waiting.readers) {
      KeyWait& wait = *link.wait;
      if (wait.missing_count != 0 || wait.queued) continue;
      wait.queued = true;
      ready.push_back(&wait);
    }
  }
  if (appeared.size() > 1) {  // the list of one key is in order already
    std::sort(ready.begin(), ready.end(),
              [](const KeyWait* a, const KeyWait* b) { return a->number < b->number; });
  }
  for (KeyWait* wait : ready) {
    wait->queued = false;
    if (!complete(*wait)) continue;
    const bool reads_value = wait->parked.operation == wire::operation<wire::Get>;
    services.answer(wait->parked,
                    reads_value ? value_answer(*wait->links.front().entry) : Answer{});
  }
}

void TableState::serve_one_taker(Entry& entry) {
  const KeyExtras* const extras = entry.block.extras();
  if (extras == nullptr || extras->waiting.takers.empty()) return;
  KeyWait& winner = *extras->waiting.takers.first().wait;
  services.answer(winner.parked, value_answer(entry));  // which is kept, so has the value itself
  remove(entry);
}

}  // namespace muster::core
