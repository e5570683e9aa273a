#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fifo.h"
#include "core/memory/payload.h"

namespace muster::core {

struct Entry;
struct Session;
struct TableState;

/// Items that were pushed at a key and not popped yet.
using Queue = base::Fifo<Payload>;

/// The queues of a table. A key may have one beside its value; neither knows of the other.
class Queues {
 public:
  explicit Queues(TableState& table) : table_(table) {}

  /// How many items are at the key; `entry` null: none.
  static std::size_t size_at(const Entry* entry);
  /// Of them, those that are not kept for guests.
  static std::size_t free_at(const Entry* entry);
  /// Of the first of them; 0: there is none.
  static std::uint64_t first_bytes_at(const Entry* entry);

  /// Behind the others, at an entry that has room for extras. Returns how many there are now.
  std::size_t push(Entry& entry, Payload item);
  /// The first item, of at least one. The entry goes with the last one, unless it has a value or a
  /// wait.
  Payload pop(Entry& entry);
  /// All of them go, and the entry as in `pop`.
  void drop(Entry& entry);

  /// An item of the queue is kept for the guest who was told of it, unless one is already.
  void offer(Entry& entry, Session& guest);
  /// It is no more. Returns where it was; null: nowhere, or all items have gone.
  static Entry* end_offer(Session& guest);

  /// Of keys that have one.
  std::uint64_t count() const { return count_; }

 private:
  void has_emptied(Entry& entry);

  TableState& table_;
  std::uint64_t count_ = 0;
};

}  // namespace muster::core
