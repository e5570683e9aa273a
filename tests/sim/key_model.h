#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "client/protocol/fate.h"

namespace muster::sim {

class Oracle;

/// The keys of one namespace of one start of the server, as a number.
inline std::uint64_t table_of(std::uint64_t incarnation, const std::string& name_space) {
  return 2 * incarnation + (name_space.empty() ? 0 : 1);
}

/// What the keys can hold, given who wrote what and who was answered what. A key belongs to one
/// start of the server; the order of beginnings and ends of calls is that of `tick`.
class KeyModel {
 public:
  using Key = std::pair<std::uint64_t, std::string>;  ///< table, key
  using Tick = std::uint64_t;

  explicit KeyModel(Oracle& oracle) : oracle_(oracle) {}

  // Counters: each add is 1.
  std::int64_t add_begins(const Key& key);
  void added(const Key& key, std::int64_t floor, std::int64_t number);
  void add_failed(const Key& key, bool in_doubt);
  void counted(const Key& key, std::int64_t number);

  // Logs: each append is another token with ";" behind.
  void append_begins(const Key& key, const std::string& token);
  void appended(const Key& key, const std::string& token);
  void append_failed(const Key& key, const std::string& token, bool in_doubt);
  void read_log(const Key& key, const std::string& log);

  // Registers: each value is written by one call only.
  Tick write_begins(const Key& key, const std::string& value);
  void written(const Key& key, const std::string& value);
  void write_failed(const Key& key, const std::string& value, bool in_doubt);
  Tick read_begins(const Key& key);
  void read(const Key& key, Tick floor, const std::optional<std::string>& value);
  /// compare_set has replaced `old`.
  void replaced(const Key& key, const std::string& old);

  // Items: set once, taken once.
  void item_begins(const Key& key);
  void item_is_set(const Key& key);
  void item_failed(const Key& key, bool in_doubt);
  void take_begins(const Key& key);
  void taken(const Key& key, const std::string& value);
  void take_failed(const Key& key, bool in_doubt);
  /// It was taken, and is there again.
  void given_back(const Key& key, bool in_doubt);
  /// What is known when somebody begins to look.
  struct Seen {
    bool is_set = false;
    bool is_taken = false;
    int given_back = 0;
  };
  Seen look_begins(const Key& key);
  void item_seen(const Key& key, Seen before, bool present);
  /// Whether it was set before that look and nobody may have taken it.
  bool is_surely_there(const Key& key, Seen before) const;

  std::map<Key, std::int64_t> counters() const;
  std::set<Key> logs() const;
  std::set<Key> items() const;

 private:
  struct Counter {
    std::int64_t begun = 0;
    std::int64_t refused = 0;
    std::int64_t confirmed = 0;
    std::int64_t highest = 0;  ///< that somebody was told
    std::set<std::int64_t> numbers;
  };
  struct Log {
    std::set<std::string> begun;
    std::set<std::string> confirmed;
    std::set<std::string> refused;
  };
  struct Write {
    Tick begun = 0;
    Tick ended = 0;  ///< 0: not, as far as anybody knows
    bool refused = false;
  };
  struct Register {
    std::map<std::string, Write> writes;
    std::set<std::string> replaced;
    Tick floor = 0;  ///< when the write began that is the last of those that are done
  };
  struct Item {
    bool set_begun = false;
    bool set_confirmed = false;
    bool set_refused = false;
    int taken = 0;
    int takes_in_doubt = 0;
    int takes_pending = 0;
    int given_back = 0;  ///< so often, as far as is known
  };

  void problem(const Key& key, const std::string& what);

  Oracle& oracle_;
  Tick tick_ = 0;
  std::map<Key, Counter> counters_;
  std::map<Key, Log> logs_;
  std::map<Key, Register> registers_;
  std::map<Key, Item> items_;
};

}  // namespace muster::sim
