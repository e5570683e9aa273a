#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/keys/block.h"
#include "core/keys/entry.h"
#include "core/keys/key_deadlines.h"
#include "core/keys/key_index.h"
#include "core/keys/key_wait.h"
#include "core/memory/hash.h"
#include "core/memory/slab.h"
#include "core/session/accounts.h"
#include "core/session/engine_services.h"

// What a table consists of; core/keys/table.cpp says what the requests do with it.

namespace muster::core {

/// What few keys have: somebody who waits there, or a session that the key goes with.
struct KeyExtras {
  KeyExtras(TableState& its_table, Entry& its_entry) : table(its_table), entry(its_entry) {}
  bool used() const {
    return session != nullptr || !waiting.readers.empty() || !waiting.takers.empty();
  }

  TableState& table;
  Entry& entry;
  Waiting waiting;
  Session* session = nullptr;
  ChainLink<KeyExtras> of_session{*this};
};

// Checked by tests/unit/core/memory_test.cpp.

/// What a key takes beside its block: its slot, its place in the index, and room to grow of both.
inline constexpr std::uint64_t entry_bytes = sizeof(Entry) + 8;
inline constexpr std::uint64_t extras_bytes = sizeof(KeyExtras) + 16;

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

/// The keys, how they come and go, and who is served then.
struct TableState {
  TableState(EngineServices& its_services, Accounts& its_accounts)
      : services(its_services), accounts(its_accounts), hash_key(its_services.options().hash_key) {}
  TableState(const TableState&) = delete;
  TableState& operator=(const TableState&) = delete;
  ~TableState();

  std::uint32_t hash_of(std::string_view key) const {
    return static_cast<std::uint32_t>(keyed_hash(hash_key, key));
  }

  /// A key whose deadline has passed is removed first.
  Spot look(std::string_view key) { return look(key, hash_of(key)); }
  Spot look(std::string_view key, std::uint32_t hash) {
    Entry* const entry = index.find(key, hash);
    const bool has_expired = entry != nullptr && entry->deadline != base::far_future &&
                             entry->deadline <= services.now();
    return has_expired ? look_after_removal(*entry, key, hash) : Spot{key, hash, entry};
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
  std::optional<NewValue> make_value(Account& payer, std::string_view first,
                                     std::string_view second = {});

  /// Whether the key is to be bound to a session.
  enum class Binding : bool { none, room };
  /// Of several drafts for one key each has a block of its own. False: the quota refuses, or the
  /// system.
  bool prepare(Draft& draft, Account& payer, const Spot& spot, const NewValue& value,
               Binding binding);
  /// Gives the key its value. Returns whether it had none: then `serve` is due.
  bool put(Draft& draft);

  /// The entry, with extras, made without a value if need be; somebody must stand there soon, or
  /// `drop_if_unused`. Null: the quota's reserve is used up.
  Entry* make_place_to_wait(Account& payer, std::string_view key);
  void drop_extras_if_unused(Entry& entry);
  void drop_if_unused(Entry& entry);

  /// The session that it goes with; null: none. Another one needs extras.
  void bind(Entry& entry, Session* session);

  /// Takes the value away; the entry goes too unless somebody waits there.
  void remove(Entry& entry);
  /// Removes keys whose deadline has passed. Returns how much was done, about as many removals, at
  /// most `work_max`.
  int expire(int work_max);

  /// Answers all who waited for these keys, which have just become present: first those who
  /// read, in the order in which they came, then one who takes per key.
  void serve(std::span<Entry* const> appeared);

  /// Whether all keys of the wait are there, after removing those whose deadline has passed.
  bool complete(KeyWait& wait);

  EngineServices& services;
  Accounts& accounts;
  const std::array<std::uint64_t, 2> hash_key;
  Slab<Entry> entries;
  KeyIndex index{entries};
  KeyDeadlines deadlines{services, entries, this};
  std::uint64_t key_count = 0;
  std::uint64_t last_wait = 0;

 private:
  friend class Draft;

  Spot look_after_removal(Entry& entry, std::string_view key, std::uint32_t hash);
  Quota& quota_of(const Entry& entry) { return accounts[entry.account].quota; }
  Entry* make_entry(Account& payer, const Spot& spot, const NewValue& value, Block::Extras extras,
                    Charging charging);
  /// Takes over its extras. The block is charged to the payer, and so is the entry from now on.
  void replace_block(Entry& entry, const Account& payer, Block block);
  bool make_extras(Entry& entry, Charging charging);
  void share_value(Entry& entry);
  void prefetch_removal(const Entry& entry) const;
  void note_presence(Entry& entry, bool is_present);
  void serve_readers(std::span<Entry* const> appeared);
  void serve_one_taker(Entry& entry);
};

}  // namespace muster::core
