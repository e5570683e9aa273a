#include "core/table_state.h"

#include <algorithm>

#include "base/planted.h"
#include "core/hash.h"
#include "core/reply_heads.h"

// Life of a key: found or made (charged to the quota) -> put: it has a value, those who waited
// are served -> removed, or expired by its timer, or found past its deadline by whoever looks
// first; all three are `remove`. The entry stays as long as the key has a value or a wait.

namespace muster::core {

Lease::~Lease() { table.quota.release(lease_bytes); }

void Lease::bind(Session* to) {
  if (session == to) return;
  of_session.leave();
  session = to;
  if (to != nullptr) to->bound_keys.append(of_session);
}

TableState::~TableState() {
  for (std::uint32_t slot = 0; slot < entries.end(); ++slot) {
    if (Entry* entry = entries.at(slot)) {
      quota.release(entry->key.size() + entry_overhead_bytes);
    }
  }
}

std::uint32_t TableState::hash_of(std::string_view key) const {
  return static_cast<std::uint32_t>(keyed_hash(host.options().hash_key, key));
}

Entry* TableState::find(std::string_view key) {
  Entry* entry = index.find(key, hash_of(key));
  if (entry == nullptr || entry->value == nullptr) return nullptr;
  if (entry->present_at(host.now())) return entry;
  remove(*entry);
  return nullptr;
}

Entry* TableState::find_or_make(std::string_view key, Purpose purpose) {
  const std::uint32_t hash = hash_of(key);
  Entry* entry = index.find(key, hash);
  if (entry != nullptr && (entry->value == nullptr || entry->present_at(host.now()))) return entry;
  if (entry != nullptr) {
    remove(*entry);
    entry = index.find(key, hash);
    if (entry != nullptr) return entry;
  }
  const std::uint64_t bytes = key.size() + entry_overhead_bytes;
  index.reserve_one();
  Entry& made = entries.emplace(key, hash);
  const bool charged = purpose == Purpose::wait ? quota.charge_reserve(bytes) : quota.charge(bytes);
  if (charged) {
    index.insert(made);
    return &made;
  }
  entries.erase(made.slot);
  return nullptr;
}

void TableState::drop_if_unused(Entry& entry) {
  if (entry.value != nullptr || entry.waiting != nullptr) return;
  index.remove(entry);
  quota.release(entry.key.size() + entry_overhead_bytes);
  entries.erase(entry.slot);
}

void TableState::drop_if_unused(std::string_view key) {
  Entry* entry = index.find(key, hash_of(key));
  if (entry == nullptr) return;
  if (entry->lease != nullptr) set_lease(*entry, entry->lease->deadline, entry->lease->session);
  drop_if_unused(*entry);
}

bool TableState::put(Entry& entry, Payload value) {
  const bool appeared = entry.value == nullptr;
  entry.value = std::move(value);
  if (!appeared) return false;
  ++key_count;
  if (entry.waiting != nullptr) {
    for (const WaitLink& link : entry.waiting->readers) --link.wait->missing_count;
  }
  return true;
}

Payload TableState::remove(Entry& entry) {
  Payload value = std::move(entry.value);
  entry.value = nullptr;
  entry.lease.reset();
  --key_count;
  if (entry.waiting != nullptr) {
    for (const WaitLink& link : entry.waiting->readers) ++link.wait->missing_count;
  }
  drop_if_unused(entry);
  return value;
}

bool TableState::make_lease(Entry& entry) {
  if (entry.lease != nullptr) return true;
  if (!quota.charge(lease_bytes)) return false;
  entry.lease = std::make_unique<Lease>(*this, entry);
  return true;
}

void TableState::set_lease(Entry& entry, Instant deadline, Session* session) {
  if (entry.lease == nullptr) return;
  if (deadline == base::far_future && session == nullptr) return entry.lease.reset();
  entry.lease->deadline = deadline;
  host.timers().arm(entry.lease->timer, deadline);
  entry.lease->bind(session);
}

bool TableState::complete(KeyWait& wait) {
  for (WaitLink& link : wait.links) {
    Entry& entry = *link.entry;
    if (entry.value != nullptr && !entry.present_at(host.now())) remove(entry);
  }
  return wait.missing_count == 0;
}

void TableState::serve(const std::vector<Entry*>& appeared) {
  std::vector<KeyWait*> ready;
  for (Entry* entry : appeared) {
    if (entry->waiting == nullptr) continue;
    for (const WaitLink& link : entry->waiting->readers) {
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
    const bool reads_value = wait->parked.operation == wire::Operation::get;
    if (reads_value ? MUSTER_PLANTED(get_not_woken) : MUSTER_PLANTED(wait_not_woken)) continue;
    Payload value = reads_value ? wait->links.front().entry->value : nullptr;
    host.answer(wait->parked, reads_value ? value_answer(std::move(value)) : Answer{});
  }
  for (Entry* entry : appeared) serve_one_taker(*entry);
}

void TableState::serve_one_taker(Entry& entry) {
  if (entry.waiting == nullptr || entry.waiting->takers.empty()) return;
  if (MUSTER_PLANTED(take_not_woken)) return;
  KeyWait& winner = *entry.waiting->takers.first().wait;
  if (MUSTER_PLANTED(take_gives_to_two)) {
    return host.answer(winner.parked, value_answer(entry.value));
  }
  host.answer(winner.parked, value_answer(remove(entry)));  // the last wait takes the entry along
}

}  // namespace muster::core
