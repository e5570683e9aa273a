#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "key_model.h"

namespace muster::sim {

/// What queues can give, given who pushed what and who was answered what: each item once, those
/// that were pushed first before the others. The order of beginnings and ends of calls is that of
/// `tick`.
class QueueModel {
 public:
  using Key = KeyModel::Key;
  using Tick = KeyModel::Tick;

  explicit QueueModel(Oracle& oracle) : oracle_(oracle) {}

  // Each item is pushed by one call only.
  void push_begins(const Key& key, const std::string& item);
  void pushed(const Key& key, const std::string& item, std::int64_t count);
  void push_failed(const Key& key, const std::string& item, bool in_doubt);
  Tick pop_begins(const Key& key);
  void popped(const Key& key, Tick begun, const std::string& item);
  /// It found nothing, until its time was up.
  void popped_nothing(const Key& key, Tick begun);
  /// In doubt: it may have popped any item since it began, which is there again sooner or later.
  void pop_failed(const Key& key, Tick begun, bool in_doubt);
  /// It was popped, and may be there again from now on.
  void may_come_back(const Key& key, const std::string& item);
  /// It is there again; in doubt: sooner or later, or never.
  void given_back(const Key& key, const std::string& item, bool in_doubt);
  /// What is known when somebody begins to ask how many there are: as many at least are in it, or
  /// have been popped meanwhile.
  struct Seen {
    std::int64_t pushed = 0;
    std::int64_t popped = 0;
    std::int64_t given_back = 0;
  };
  Seen look_begins(const Key& key) const;
  void counted(const Key& key, Seen before, std::int64_t count) const;

  std::set<Key> queues() const;

 private:
  static constexpr Tick unknown = ~Tick{0};

  struct Item {
    Tick begun = 0;
    Tick pushed = 0;           ///< 0: not, as far as anybody knows
    Tick popped = 0;           ///< 0: by nobody who knows it
    Tick asked = 0;            ///< the pop that got it began
    Tick back = 0;             ///< it was given back, and surely there from then on; 0: it was not
    int holders = 0;           ///< pops that have it and may give it back
    bool is_in_doubt = false;  ///< whether one of them has given it back
    bool refused = false;
  };
  struct Queue {
    std::map<std::string, Item> items;
    std::int64_t pushed = 0;
    std::int64_t popped = 0;
    std::int64_t may_be_pushed = 0;  ///< with those in doubt
    std::int64_t pops_pending = 0;
    std::int64_t given_back = 0;
    std::int64_t pops_in_doubt = 0;
    Tick first_doubt = unknown;  ///< when the first pop began that is in doubt
  };

  void problem(const Key& key, const std::string& what) const;

  Oracle& oracle_;
  Tick tick_ = 0;
  std::map<Key, Queue> queues_;
};

}  // namespace muster::sim
