#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/keys/block.h"
#include "core/keys/entry.h"
#include "core/keys/key_count.h"
#include "core/keys/key_deadlines.h"
#include "core/keys/key_index.h"
#include "core/keys/key_wait.h"
#include "core/keys/queues.h"
#include "core/keys/serving.h"
#include "core/keys/taken.h"
#include "core/memory/hash.h"
#include "core/memory/slab.h"
#include "core/session/accounts.h"
#include "core/session/engine_services.h"

// What a table consists of; core/keys/table.cpp says what the requests do with it.

namespace muster::core {

/// What only guests have at a key, and its queue.
struct GuestExtras {
  bool empty() const { return waits.empty() && pops.empty() && queue.empty(); }

  Chain<WaitLink> waits;  ///< of guests; each leaves the key as soon as that comes
  Chain<WaitLink>
      pops;  ///< for an item that is for nobody else: there is none as long as they wait
  Queue queue;
  Chain<Offer> offers;  ///< that guests have, of items in the queue
  std::size_t offers_count = 0;
};

/// What few keys have: somebody who waits there, a session that the key goes with, or a queue.
struct KeyExtras {
  KeyExtras(TableState& its_table, Entry& its_entry) : table(its_table), entry(its_entry) {}
  bool used() const {
    return bound != nullptr || !waiting.empty() || (guests != nullptr && !guests->empty());
  }
  /// Made if there is none, and charged in any case.
  GuestExtras& of_guests();

  TableState& table;
  Entry& entry;
  Waiting waiting;
  BoundKeys* bound = nullptr;  ///< those with which it goes
  ChainLink<KeyExtras> among_bound{*this};
  std::unique_ptr<GuestExtras> guests;  ///< null: they have nothing here
};

// Checked by tests/unit/core/memory_test.cpp.

/// What a key takes beside its block: its slot, its place in the index, and room to grow of both.
inline constexpr std::uint64_t entry_bytes = sizeof(Entry) + 8;
inline constexpr std::uint64_t extras_bytes = sizeof(KeyExtras) + 16;
inline constexpr std::uint64_t guest_extras_bytes = sizeof(GuestExtras) + 16;
inline constexpr std::uint64_t readers_bytes = sizeof(Readers) + 16;

/// Whether it went with a session that has ended.
inline bool is_gone(const Entry& entry) {
  const KeyExtras* const extras = entry.block.extras();
  return extras != nullptr && extras->bound != nullptr && extras->bound->are_gone;
}
inline bool is_present(const Entry& entry, Instant at) {
  return entry.present_at(at) && !is_gone(entry);
}

/// Where a key is, or would be.
struct Spot {
  std::string_view key;
  std::uint32_t hash = 0;
  Entry* entry = nullptr;  ///< null, or without a value while somebody waits

  bool has_value() const { return entry != nullptr && entry->has_value; }
};

/// A write that cannot fail any more: what it takes is allocated and charged. Without a `put` it
/// leaves no trace.
class Draft {
 public:
  explicit Draft(TableState& table) : table_(&table) {}
  Draft(Draft&& other) noexcept;
  Draft& operator=(Draft&&) = delete;
  ~Draft();

  Entry& entry() const { return *entry_; }

 private:
  friend struct TableState;

  TableState* table_;
  Account* payer_ = nullptr;  ///< of the block
  Entry* entry_ = nullptr;    ///< null: nothing is left to be undone
  Block block_;               ///< none: the entry has its own, with the value in it
  bool made_entry_ = false;
  bool made_extras_ = false;
};

struct TableState;

/// Removes the keys of sessions that have ended: they are gone already.
class GoneKeys final : public Backlog::Job {
 public:
  explicit GoneKeys(TableState& table) : table_(table) {}

  void add(std::shared_ptr<BoundKeys> keys) { gone_.push_back(std::move(keys)); }
  int work(int work_max) override;

 private:
  TableState& table_;
  std::deque<std::shared_ptr<BoundKeys>> gone_;
};

/// The keys, how they come and go.
struct TableState {
  TableState(EngineServices& its_services, Accounts& its_accounts)
      : services(its_services),
        accounts(its_accounts),
        hash_key(its_services.options().hash_key),
        key_count(its_services.counted().held.keys) {}
  TableState(const TableState&) = delete;
  TableState& operator=(const TableState&) = delete;
  ~TableState();

  std::uint32_t hash_of(std::string_view key) const {
    return static_cast<std::uint32_t>(keyed_hash(hash_key, key));
  }

  /// A key whose deadline has passed, or that is gone, is removed first.
  Spot look(std::string_view key) { return look(key, hash_of(key)); }
  Spot look(std::string_view key, std::uint32_t hash) {
    Entry* const entry = index.find(key, hash);
    if (entry == nullptr) return {key, hash, nullptr};
    const bool has_expired =
        entry->deadline != base::far_future && entry->deadline <= services.now();
    if (has_expired || is_gone(*entry)) return look_after_removal(*entry, key, hash);
    return {key, hash, entry};
  }
  /// The key's entry if it has a value now.
  Entry* find(std::string_view key) {
    const Spot spot = look(key);
    return spot.has_value() ? spot.entry : nullptr;
  }

  /// Puts a short value in place of the one that is there, for which nothing is allocated. False:
  /// it is not of about the same size, another account has it, or the quota refuses all writes.
  bool overwrite(const Account& payer, const Spot& spot, std::string_view first,
                 std::string_view second) {
    const bool fits = spot.has_value() && spot.entry->block.fits(first.size() + second.size());
    if (!fits || spot.entry->account != payer.index || payer.quota.is_passed()) return false;
    spot.entry->block.overwrite(first, second);
    return true;
  }

  /// What is stored as a payload, when it is long, becomes one. Nothing: the quota refuses.
  std::optional<NewValue> make_value(Account& payer, std::string_view first) {
    return make_value(payer, {}, first, {});
  }
  /// The same of two pieces, the first of which may be the value of the entry.
  std::optional<NewValue> make_value(Account& payer, const Spot& spot, std::string_view first,
                                     std::string_view second);

  /// Whether the key is to be bound to a session.
  enum class Binding : bool { none, room };
  /// Of several drafts for one key each has a block of its own. False: the quota refuses, or the
  /// system.
  bool prepare(Draft& draft, Account& payer, const Spot& spot, const NewValue& value,
               Binding binding, Charging charging = Charging::normal);
  /// Gives the key its value. Returns whether it had none: then `serve` is due.
  bool put(Draft& draft);

  /// The entry, with extras, made without a value if need be; somebody must stand there soon, or
  /// `drop_if_unused`. Null: the quota's reserve is used up.
  Entry* make_place_to_wait(Account& payer, std::string_view key) {
    return make_place(payer, key, Charging::reserve);
  }
  /// The same, for an item that is pushed there next.
  Entry* make_place(Account& payer, std::string_view key, Charging charging);
  void drop_extras_if_unused(Entry& entry);
  void drop_if_unused(Entry& entry);

  /// The keys of a session with which it goes; null: none. Others need extras.
  void bind(Entry& entry, BoundKeys* keys);
  /// From now on they are absent.
  void let_go(std::shared_ptr<BoundKeys> keys);

  /// Takes the value away; the entry goes too unless somebody waits there.
  void remove(Entry& entry);
  /// Removes keys whose deadline has passed. Returns how much was done, about as many removals, at
  /// most `work_max`.
  int expire(int work_max);

  /// The value, for whoever reads its bytes.
  std::string_view whole_value(const Entry& entry) {
    if (entry.block.is_shared()) services.effects().long_copies().make_whole(entry.block.shared());
    return entry.value();
  }
  /// The value as a payload, which it becomes if it is short.
  Payload shared_value(const Entry& entry);
  /// Lets the entry have it so.
  void share_value(Entry& entry);

  EngineServices& services;
  Accounts& accounts;
  const std::array<std::uint64_t, 2> hash_key;
  Slab<Entry> entries;
  KeyIndex index{entries};
  KeyDeadlines deadlines{services, entries, this};
  KeyCount key_count;
  /// Those that can be given back, by their keys. They outlive their place here.
  std::unordered_map<std::string_view, TakenKey*> taken_keys;
  Queues queues{*this};
  Serving serving{*this, services};
  GoneKeys gone_keys{*this};

 private:
  friend class Draft;

  Spot look_after_removal(Entry& entry, std::string_view key, std::uint32_t hash);
  Quota& quota_of(const Entry& entry) { return accounts[entry.account].quota; }
  Entry* make_entry(Account& payer, const Spot& spot, const NewValue& value, Block::Extras extras,
                    Charging charging);
  /// Takes over its extras. The block is charged to the payer, and so is the entry from now on.
  void replace_block(Entry& entry, const Account& payer, Block block);
  bool make_extras(Entry& entry, Charging charging);
  Payload join_later(Quota& quota, const Spot& spot, std::string_view first,
                     std::string_view second);
  void prefetch_removal(const Entry& entry) const;
  void note_presence(Entry& entry, bool is_present);
  void note_set_again(std::string_view key);
};

}  // namespace muster::core
