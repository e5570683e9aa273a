#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/host.h"
#include "core/key_index.h"
#include "core/slab.h"
#include "core/waits.h"
#include "wire/request.h"

// What a table consists of; core/table.cpp says what the requests do with it.

namespace muster::core {

/// What a key has that does not live for ever: a deadline, or a session it goes with.
struct Lease {
  /// Takes over a charge of `lease_bytes` that was made already.
  Lease(TableState& its_table, Entry& its_entry) : table(its_table), entry(its_entry) {}
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// To none when null.
  void bind(Session* to);

  TableState& table;
  Entry& entry;
  Timer timer{TimerKind::key, this};
  Instant deadline = base::far_future;
  Session* session = nullptr;  ///< bound to it
  Link<Lease> of_session{*this};
};

/// A key that has a value, or that somebody waits for, or both.
struct Entry {
  Entry(std::uint32_t its_slot, std::string_view its_key, std::uint32_t its_hash)
      : key(its_key), hash(its_hash), slot(its_slot) {}

  bool present_at(Instant now) const {
    return value != nullptr && (lease == nullptr || now < lease->deadline);
  }

  std::string key;
  Payload value;                     ///< null: absent
  std::unique_ptr<Lease> lease;      ///< null: lives until removed
  std::unique_ptr<Waiting> waiting;  ///< null: nobody waits
  Entry* next_in_bucket = nullptr;
  std::uint32_t hash;
  std::uint32_t slot;
};

/// What a key takes beside its own bytes and its value; checked by tests/unit/core/memory_test.cpp.
inline constexpr std::uint64_t entry_overhead_bytes = 120;
inline constexpr std::uint64_t lease_bytes = sizeof(Lease) + 16;

/// The keys, how they come and go, and who is served then.
struct TableState {
  TableState(Host& its_host, Quota& its_quota) : host(its_host), quota(its_quota) {}
  TableState(const TableState&) = delete;
  TableState& operator=(const TableState&) = delete;
  ~TableState();

  /// The key's entry if it has a value now; one whose deadline has passed is removed first.
  Entry* find(std::string_view key);

  /// The key's entry, made without a value if need be. Null when the quota refuses it; waits may
  /// use the quota's reserve. An entry without value and waits must be dropped or filled soon.
  enum class Purpose { write, wait };
  Entry* find_or_make(std::string_view key, Purpose purpose);
  void drop_if_unused(Entry& entry);
  /// As above, and an unused lease goes too.
  void drop_if_unused(std::string_view key);

  /// Gives the entry a value; its lease stays. Returns whether it had none: then `serve` is due.
  bool put(Entry& entry, Payload value);

  /// False when the quota refuses.
  bool make_lease(Entry& entry);
  /// The instant at which the key goes, and the session it goes with (null: none). Others than
  /// far_future and null need a lease.
  void set_lease(Entry& entry, Instant deadline, Session* session);

  /// Takes the value away; the entry goes too unless somebody waits there.
  Payload remove(Entry& entry);

  /// Answers all who waited for these keys, which have just become present: first those who
  /// read, in the order in which they came, then one who takes per key.
  void serve(const std::vector<Entry*>& appeared);

  /// Whether all keys of the wait are there, after removing those whose deadline has passed.
  bool complete(KeyWait& wait);

  Host& host;
  Quota& quota;
  Slab<Entry> entries;
  KeyIndex index;
  std::uint64_t key_count = 0;
  std::uint64_t last_wait = 0;

 private:
  std::uint32_t hash_of(std::string_view key) const;
  void serve_one_taker(Entry& entry);
};

}  // namespace muster::core
