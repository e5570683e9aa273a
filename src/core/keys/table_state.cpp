#include "core/keys/table_state.h"

#include <new>
#include <utility>

// Life of a key: looked for -> a write is drafted (all that it takes is allocated and charged to
// the quota; a new entry stands in the index, without a value) -> put: it has the value, those who
// waited are served -> removed, or expired by the wheel of deadlines, or found past its deadline by
// whoever looks first; all three are `remove`. The entry stays as long as the key has a value or a
// wait.

namespace muster::core {
namespace {

constexpr int moves_per_removal = 8;  ///< in the wheel, that take as long
constexpr std::uint64_t places_per_step = 16;

std::uint64_t bytes_of(const KeyExtras& extras) {
  if (extras.guests == nullptr) return extras_bytes;
  return extras_bytes + guest_extras_bytes + extras.guests->queue.given_back_bytes();
}

[[gnu::noinline]] void give_back(Quota& quota, KeyExtras* extras) {
  const std::uint64_t bytes = bytes_of(*extras);
  delete extras;
  quota.release(bytes);
}

/// What the entry takes beside its block is the payer's from now on. Apart, since it is rare.
[[gnu::noinline]] void charge_to(Accounts& accounts, Entry& entry, const Account& payer) {
  const KeyExtras* const extras = entry.block.extras();
  const std::uint64_t bytes = entry_bytes + (extras != nullptr ? bytes_of(*extras) : 0);
  accounts[entry.account].quota.release(bytes);
  entry.account = payer.index & Entry::account_bits;
  accounts[entry.account].quota.charge_always(bytes);
}

}  // namespace

Draft::Draft(Draft&& other) noexcept
    : table_(other.table_),
      payer_(other.payer_),
      entry_(std::exchange(other.entry_, nullptr)),
      block_(std::exchange(other.block_, {})),
      made_entry_(other.made_entry_),
      made_extras_(other.made_extras_) {}

Draft::~Draft() {
  if (block_) free_charged(payer_->quota, block_);
  if (entry_ == nullptr) return;
  if (made_extras_) table_->drop_extras_if_unused(*entry_);
  if (made_entry_) table_->drop_if_unused(*entry_);
}

TableState::~TableState() {
  services.counted().held.queues -= queues.count();
  for (std::uint32_t slot = 0; slot < entries.end(); ++slot) {
    Entry* entry = entries.at(slot);
    if (entry == nullptr) continue;
    deadlines.set(*entry, base::far_future);
    bind(*entry, nullptr);
    if (KeyExtras* const extras = entry->block.extras(); extras != nullptr && extras->guests) {
      quota_of(*entry).release(extras->guests->queue.given_back_bytes());
      extras->guests->queue.clear();
    }
    drop_extras_if_unused(*entry);
    free_charged(quota_of(*entry), entry->block);
    quota_of(*entry).release(entry_bytes);
  }
}

Spot TableState::look_after_removal(Entry& entry, std::string_view key, std::uint32_t hash) {
  remove(entry);
  return {key, hash, index.find(key, hash)};  // it stays if somebody waits there
}

std::optional<NewValue> TableState::make_value(Account& payer, const Spot& spot,
                                               std::string_view first, std::string_view second) {
  const std::size_t bytes = first.size() + second.size();
  if (bytes < shared_value_bytes_min) return NewValue{first, second, nullptr};
  Payload payload;
  if (first.empty() || second.empty()) {
    payload = services.retain(payer.quota, first.empty() ? second : first, Charging::normal);
  } else if (services.effects().may_copy(bytes)) {
    services.effects().spend_on_copying(bytes);
    if (spot.has_value()) whole_value(*spot.entry);
    payload = make_payload_joined(payer.quota, first, second);
  } else {
    payload = join_later(payer.quota, spot, first, second);
  }
  if (payload == nullptr) return std::nullopt;
  return NewValue{{}, {}, std::move(payload)};
}

Payload TableState::join_later(Quota& quota, const Spot& spot, std::string_view first,
                               std::string_view second) {
  std::vector<CopyPart> parts(2);
  if (spot.has_value() && spot.entry->block.is_shared()) {
    parts[0].value = spot.entry->block.shared();
  } else {
    parts[0].text = first;
  }
  parts[1].value = services.retain(quota, second, Charging::normal);
  if (parts[1].value == nullptr) return nullptr;
  return services.effects().long_copies().begin(quota, std::move(parts), Charging::normal);
}

GuestExtras& KeyExtras::of_guests() {
  if (guests == nullptr) {
    guests = std::make_unique<GuestExtras>();
    table.accounts[entry.account].quota.charge_always(guest_extras_bytes);
  }
  return *guests;
}

void TableState::replace_block(Entry& entry, const Account& payer, Block block) {
  KeyExtras* const extras = entry.block.extras();
  if (extras != nullptr) block.set_extras(extras);
  free_charged(quota_of(entry), entry.block);
  entry.block = block;
  if (entry.account != payer.index) charge_to(accounts, entry, payer);
}

Entry* TableState::make_entry(Account& payer, const Spot& spot, const NewValue& value,
                              Block::Extras extras, Charging charging) {
  Quota& quota = payer.quota;
  if (!quota.charge(entry_bytes, charging)) return nullptr;
  Block block = make_charged(quota, spot.key, value, extras, charging);
  try {
    if (block) {
      index.reserve_one();
      Entry& entry = entries.emplace(block, spot.hash, payer.index);
      index.insert(entry);
      return &entry;
    }
  } catch (const std::bad_alloc&) {
    free_charged(quota, block);
    quota.set_short(true);
  }
  quota.release(entry_bytes);
  return nullptr;
}

bool TableState::make_extras(Entry& entry, Charging charging) {
  Quota& quota = quota_of(entry);
  if (!entry.block.has_room_for_extras()) {
    const bool is_shared = entry.block.is_shared();
    const NewValue value =
        is_shared ? NewValue{{}, {}, entry.block.shared()} : NewValue{entry.value(), {}, nullptr};
    const Block block = make_charged(quota, entry.key(), value, Block::Extras::room, charging);
    if (!block) return false;
    replace_block(entry, accounts[entry.account], block);
  }
  if (!quota.charge(extras_bytes, charging)) return false;
  try {
    entry.block.set_extras(new KeyExtras(*this, entry));
    return true;
  } catch (const std::bad_alloc&) {
    quota.release(extras_bytes);
    quota.set_short(true);
    return false;
  }
}

Payload TableState::shared_value(const Entry& entry) {
  if (entry.block.is_shared()) return entry.block.shared();
  return make_payload(quota_of(entry), entry.value(), Charging::always);
}

void TableState::share_value(Entry& entry) {
  if (entry.block.is_shared()) return;
  const NewValue value{{}, {}, shared_value(entry)};
  replace_block(
      entry, accounts[entry.account],
      make_charged(quota_of(entry), entry.key(), value, Block::Extras::room, Charging::always));
}

void TableState::drop_extras_if_unused(Entry& entry) {
  KeyExtras* const extras = entry.block.extras();
  if (extras == nullptr || extras->used()) return;
  entry.block.set_extras(nullptr);
  give_back(quota_of(entry), extras);
}

void TableState::drop_if_unused(Entry& entry) {
  drop_extras_if_unused(entry);
  if (entry.has_value || entry.block.extras() != nullptr) return;
  index.remove(entry);
  Quota& quota = quota_of(entry);
  free_charged(quota, entry.block);
  quota.release(entry_bytes);
  entries.erase(entry.slot);
}

Entry* TableState::make_place(Account& payer, std::string_view key, Charging charging) {
  Spot spot = look(key);
  if (spot.entry == nullptr) {
    spot.entry = make_entry(payer, spot, {}, Block::Extras::room, charging);
  }
  if (spot.entry == nullptr) return nullptr;
  if (spot.entry->block.extras() != nullptr) return spot.entry;
  if (make_extras(*spot.entry, charging)) return spot.entry;
  drop_if_unused(*spot.entry);
  return nullptr;
}

bool TableState::prepare(Draft& draft, Account& payer, const Spot& spot, const NewValue& value,
                         Binding binding, Charging charging) {
  const auto extras = binding == Binding::room ? Block::Extras::room : Block::Extras::none;
  draft.payer_ = &payer;
  draft.entry_ = spot.entry;
  if (spot.entry == nullptr) {
    draft.entry_ = make_entry(payer, spot, value, extras, charging);
    if (draft.entry_ == nullptr) return false;
    draft.made_entry_ = true;
  }
  Entry& entry = *draft.entry_;
  if (binding == Binding::room && entry.block.extras() == nullptr) {
    if (!make_extras(entry, charging)) return false;
    draft.made_extras_ = true;
  }
  if (draft.made_entry_) return true;
  const bool has_room = entry.block.has_room_for_extras();
  draft.block_ = make_charged(payer.quota, entry.key(), value,
                              has_room ? Block::Extras::room : Block::Extras::none, charging);
  return static_cast<bool>(draft.block_);
}

bool TableState::put(Draft& draft) {
  Entry& entry = *std::exchange(draft.entry_, nullptr);
  if (draft.block_) replace_block(entry, *draft.payer_, std::exchange(draft.block_, {}));
  if (entry.has_value) return false;
  if (!taken_keys.empty()) note_set_again(entry.key());
  key_count.add_one();
  note_presence(entry, true);
  return true;
}

/// What was taken of the key is not given back over a newer value.
void TableState::note_set_again(std::string_view key) {
  const auto taken = taken_keys.find(key);
  if (taken != taken_keys.end()) taken->second->note_set_again();
}

void TableState::note_presence(Entry& entry, bool is_present) {
  entry.has_value = is_present ? 1 : 0;
  KeyExtras* const extras = entry.block.extras();
  if (extras == nullptr) return;
  std::uint64_t count = 0;
  for (const WaitLink& link : extras->waiting.several) {
    std::size_t& missing_count = link.wait->missing_count;
    is_present ? --missing_count : ++missing_count;
    ++count;
  }
  services.effects().spend(count / places_per_step);
}

void TableState::remove(Entry& entry) {
  services.effects().spend(1);
  if (!is_gone(entry)) key_count.remove(1);
  deadlines.set(entry, base::far_future);
  bind(entry, nullptr);
  entry.block.let_go_of_shared();
  note_presence(entry, false);
  drop_if_unused(entry);
}

void TableState::bind(Entry& entry, BoundKeys* keys) {
  KeyExtras* const extras = entry.block.extras();
  if (extras == nullptr || extras->bound == keys) return;
  if (extras->bound != nullptr) --extras->bound->count;
  extras->among_bound.leave();
  extras->bound = keys;
  if (keys == nullptr) return;
  keys->keys.append(extras->among_bound);
  ++keys->count;
}

void TableState::let_go(std::shared_ptr<BoundKeys> keys) {
  keys->are_gone = true;
  key_count.remove(keys->count);
  gone_keys.add(std::move(keys));
  const int work_max = services.effects().work_left();
  if (gone_keys.work(work_max) >= work_max) services.effects().backlog().add(gone_keys);
}

int GoneKeys::work(int work_max) {
  int done = 0;
  for (; done < work_max && !gone_.empty(); ++done) {
    const Chain<KeyExtras>& keys = gone_.front()->keys;
    if (keys.empty()) {
      gone_.pop_front();
    } else {
      table_.remove(keys.first().entry);
    }
  }
  return done;
}

void TableState::prefetch_removal(const Entry& entry) const {
  index.prefetch_bucket(entry.hash);
  __builtin_prefetch(entry.block.begin());
}

int TableState::expire(int work_max) {
  int work = 0;
  while (work < work_max) {
    if (Entry* const entry = deadlines.take_due()) {
      prefetch_removal(entries[entry->next_in_wheel]);  // whose turn is next, if anybody's
      remove(*entry);
      ++work;
      continue;
    }
    if (!deadlines.has_due()) break;
    work += Wheel<EntryLinks>::moves_per_call_max / moves_per_removal;
  }
  deadlines.rearm();
  return work;
}

}  // namespace muster::core
