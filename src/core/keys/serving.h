#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/keys/decision.h"

namespace muster::core {

/// Serves those who wait for keys of a table.
class Serving {
 public:
  Serving(TableState& table, EngineServices& services) : table_(table), late_answers_(services) {}

  /// Decides for all who waited for these keys, which have just become present: first those who
  /// read, in the order in which they came, then one who takes per key.
  void serve(std::span<Entry* const> appeared);
  /// All guests who wait at the key, which is there, are served: its barrier is complete.
  void serve_guests(Entry& entry);
  /// Items of the key's queue are free: a new one, or one that is no longer reserved. They serve
  /// guests, which are notified, and pops, in the order in which these arrived.
  void serve_queue(Entry& entry);

  std::uint64_t last_wait = 0;          ///< the number of the one that came last
  std::uint64_t places_of_several = 0;  ///< that waits for several keys have at keys

 private:
  /// Waits whose last key has come, with their numbers.
  using Ready = std::vector<std::pair<std::uint64_t, KeyWait*>>;

  void decide_readers(std::span<Entry* const> appeared, Decision& decision);
  void decide_several(std::span<Entry* const> appeared, Decision& decision);
  void take_guests(Entry& entry, Ready& ready);
  void decide(Ready& ready, Decision& decision);
  void tell(Decision& decision);
  bool complete(KeyWait& wait);
  void serve_one_guest(Entry& entry);
  void serve_one_taker(Entry& entry);

  TableState& table_;
  LateAnswers late_answers_;
};

}  // namespace muster::core
