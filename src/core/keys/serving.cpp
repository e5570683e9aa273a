#include "core/keys/serving.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <climits>

#include "core/keys/table_state.h"
#include "core/keys/taken.h"
#include "core/keys/value_answers.h"

// How those are served who waited for keys that have just come. What each gets is decided at once.
// As many as the event may are told in it: they read one value, and borrow it until the replies are
// put together; when somebody takes it too, and it goes at once, they share it. If there are more,
// all share it, and the others are told by later events.

namespace muster::core {

/// Whether all keys of the wait are there, after removing those that are not any more.
bool Serving::complete(KeyWait& wait) {
  for (const WaitLink& link : wait.links) {
    Entry& entry = *link.entry;
    if (entry.has_value && !is_present(entry, table_.services.now())) table_.remove(entry);
  }
  return wait.missing_count == 0;
}

/// Within its callers: of few waits a call would be a good part.
[[gnu::always_inline]] inline void Serving::tell(Decision& decision) {
  // Nobody is told before those for whom it was decided earlier.
  int left = late_answers_.empty() ? table_.services.effects().work_left() : 0;
  // To be told later they need values of their own. When there is no memory for them, all are
  // told now.
  if (table_.services.memory().room.left_bytes() == 0) {
    late_answers_.work(INT_MAX);
    left = INT_MAX;
  }
  if (decision.count() > static_cast<std::size_t>(left)) decision.keep_values(table_);
  KeyWait* wait = decision.next();
  for (; wait != nullptr && left > 0; wait = decision.next(), --left) {
    table_.services.answer(wait->parked, decision.answer(*wait));
  }
  if (wait != nullptr) late_answers_.add(std::move(decision));
}

void Serving::serve(std::span<Entry* const> appeared) {
  Decision decision;
  decide_readers(appeared, decision);
  decide_several(appeared, decision);
  if (!decision.empty()) tell(decision);
  for (Entry* entry : appeared) serve_one_taker(*entry);
}

void Serving::serve_guests(Entry& entry) {
  Decision decision;
  Ready ready;
  take_guests(entry, ready);
  if (!ready.empty()) decide(ready, decision);
  if (!decision.empty()) tell(decision);
}

void Serving::serve_queue(Entry& entry) {
  while (Queues::free_at(&entry) != 0) {
    const GuestExtras& guests = *entry.block.extras()->guests;
    const Chain<WaitLink>& waits = guests.waits;
    const Chain<WaitLink>& pops = guests.pops;
    const bool is_guests_turn =
        !waits.empty() && (pops.empty() || waits.first().wait->number < pops.first().wait->number);
    if (is_guests_turn) {
      // A guest who waits for other keys, too, is not notified: the item is for the next one.
      serve_one_guest(entry);
      continue;
    }
    if (pops.empty()) return;
    const bool is_last = Queues::size_at(&entry) == 1;
    Parked& winner = pops.first().wait->parked;
    table_.services.answer(winner, pop_answer(table_, winner.session.account, entry));
    if (is_last) return;  // and the entry may be removed
  }
}

/// The item is reserved for the guest that is notified of it.
void Serving::serve_one_guest(Entry& entry) {
  const Chain<WaitLink>& waits = entry.block.extras()->guests->waits;
  KeyWait& wait = *waits.first().wait;
  // Who has named the key more than once stands there as often, in a row.
  do {
    if (!wait.has_come(waits.first())) continue;
    table_.queues.offer(entry, wait.parked.session);
    return table_.services.answer(wait.parked, Answer{});
  } while (!waits.empty() && waits.first().wait == &wait);
}

/// All who wait for one of these keys, and no other.
void Serving::decide_readers(std::span<Entry* const> appeared, Decision& decision) {
  for (Entry* entry : appeared) {
    KeyExtras* const extras = entry->block.extras();
    if (extras == nullptr || extras->waiting.readers == nullptr) continue;
    if (!extras->waiting.takers.empty()) table_.share_value(*entry);
    decision.add(std::move(entry->block.extras()->waiting.readers), entry);
    table_.drop_extras_if_unused(*entry);
  }
}

/// Those for whom these were the last of several keys, and guests.
void Serving::decide_several(std::span<Entry* const> appeared, Decision& decision) {
  Ready ready;
  for (Entry* const entry : appeared) {
    const KeyExtras* const extras = entry->block.extras();
    if (extras == nullptr) continue;
    for (const WaitLink& link : extras->waiting.several) {
      KeyWait& wait = *link.wait;
      if (wait.missing_count != 0 || std::exchange(wait.queued, true)) continue;
      ready.emplace_back(wait.number, &wait);
    }
    if (extras->guests != nullptr) take_guests(*entry, ready);
  }
  if (!ready.empty()) decide(ready, decision);
}

/// They stand at the key no more.
void Serving::take_guests(Entry& entry, Ready& ready) {
  const KeyExtras* const extras = entry.block.extras();
  if (extras == nullptr || extras->guests == nullptr) return;
  Chain<WaitLink>& waits = extras->guests->waits;
  while (!waits.empty()) {
    WaitLink& link = waits.first();
    KeyWait& wait = *link.wait;
    if (wait.has_come(link)) ready.emplace_back(wait.number, &wait);
  }
  table_.drop_extras_if_unused(entry);
}

/// There are some.
void Serving::decide(Ready& ready, Decision& decision) {
  std::sort(ready.begin(), ready.end());
  Quota& quota = ready.front().second->parked.session.account.quota;
  auto told = std::make_unique<Readers>(quota, nullptr);
  for (const auto& [number, wait] : ready) {
    wait->queued = false;
    if (wait->parked.session.is_guest || complete(*wait)) wait->decide(*told);
  }
  if (told->count != 0) decision.add(std::move(told), nullptr);
}

void Serving::serve_one_taker(Entry& entry) {
  const KeyExtras* const extras = entry.block.extras();
  if (extras == nullptr || extras->waiting.takers.empty()) return;
  Parked& winner = extras->waiting.takers.first().wait->parked;
  // Which is kept, so has the value itself.
  table_.services.answer(winner, take_answer(table_, winner.session.account, entry));
  table_.remove(entry);
}

}  // namespace muster::core
