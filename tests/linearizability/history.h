#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::linear {

/// What the operations do to one key, whose value is absent or decimal text.
/// The server gives back, which only the checker puts into a history.
enum class Kind : std::uint8_t { get, set, add, compare_set, take, give_back, remove };

/// One call of one client, and what came of it.
struct Operation {
  int client = 0;
  Kind kind = Kind::get;
  std::string argument;                 ///< of set and compare_set: the new value; of add: what
  std::optional<std::string> expected;  ///< of compare_set; none: absent
  std::int64_t called_ns = 0;
  std::int64_t answered_ns = 0;  ///< of no meaning when `is_known` does not hold
  /// Whether it was answered. If not it took place once, some time after it was called, or never.
  bool is_known = false;
  bool is_applied = false;           ///< of compare_set and remove, as answered
  std::optional<std::string> found;  ///< of get and take: what; of add: the sum; of compare_set
                                     ///< that was not applied: what is there
};

/// The operations on one key that begins absent, in any order.
using History = std::vector<Operation>;

/// One line for people.
std::string to_string(const Operation& operation);

}  // namespace muster::linear
