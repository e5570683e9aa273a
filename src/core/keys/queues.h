#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "base/fifo.h"
#include "core/memory/payload.h"

namespace muster::core {

struct Entry;
class Quota;
struct Session;
struct TableState;

/// An item that was popped, and its number among those of the table.
struct PoppedItem {
  Payload item;
  std::uint64_t number = 0;
};

/// Items that were pushed at a key and not popped yet, in the order in which they were pushed:
/// first those that were popped and given back, then those that never were.
class Queue {
 public:
  bool empty() const { return given_back_.empty() && items_.empty(); }
  std::size_t size() const { return given_back_.size() + items_.size(); }
  const Payload& front() const {
    return given_back_.empty() ? items_.front() : given_back_.begin()->second;
  }
  void push_back(Payload item) { items_.push_back(std::move(item)); }
  /// last_number  is counted up, if the item is popped for the first time
  PoppedItem pop_front(std::uint64_t& last_number);
  void put_back(std::uint64_t number, Payload item) {
    given_back_.emplace(number, std::move(item));
  }
  void clear();

  /// What those take that were given back, beside their bytes.
  std::uint64_t given_back_bytes() const { return given_back_.size() * given_back_item_bytes; }
  static constexpr std::uint64_t given_back_item_bytes = 80;

 private:
  std::map<std::uint64_t, Payload> given_back_;
  base::Fifo<Payload> items_;
};

/// The queues of a table. A key may have one beside its value; neither knows of the other.
class Queues {
 public:
  explicit Queues(TableState& table) : table_(table) {}

  /// How many items are at the key; `entry` null: none.
  static std::size_t size_at(const Entry* entry);
  /// Of them, those that are not reserved for guests.
  static std::size_t free_at(const Entry* entry);
  /// Whether an item is free, or reserved for this guest.
  static bool may_pop(const Entry* entry, const Session& guest);
  /// Of the first of them; 0: there is none.
  static std::uint64_t first_bytes_at(const Entry* entry);

  /// Behind the others, at an entry that has room for extras. Returns how many there are now.
  std::size_t push(Entry& entry, Payload item);
  /// The first item, of at least one. The entry goes with the last one, unless it has a value or a
  /// wait.
  PoppedItem pop(Entry& entry);
  /// What `pop` has removed, to its place; at an entry that has room for extras.
  void put_back(Entry& entry, std::uint64_t number, Payload item);
  /// All of them go, and the entry as in `pop`.
  void drop(Entry& entry);

  /// Reserves a free item for the guest until the grace is over, unless it has one already.
  void offer(Entry& entry, Session& guest);
  /// Ends the reservation. Returns where it was; null: there was none, or all items are removed.
  static Entry* end_offer(Session& guest);

  /// Of keys that have one.
  std::uint64_t count() const { return count_; }

 private:
  void will_fill(const Queue& queue);
  void has_emptied(Entry& entry);
  Quota& quota_of(const Entry& entry) const;

  TableState& table_;
  std::uint64_t count_ = 0;
  std::uint64_t last_popped_ = 0;  ///< a count of the items that were popped once
};

}  // namespace muster::core
