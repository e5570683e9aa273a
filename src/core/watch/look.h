#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/groups/glance/group_glance.h"
#include "core/groups/history/history.h"
#include "core/keys/prefix_counts.h"

// What the server's own process looks at, on another thread: it is taken in pieces, so that no turn
// is long, and is plain data.

namespace muster::core {

/// One thing to look at.
struct Look {
  enum class Subject : std::uint8_t {
    sessions,
    waiters,
    groups,
    all_groups,
    group,
    waiting_groups,
    name_spaces,
    history,
    prefixes,
  };

  Subject subject = Subject::groups;
  std::string name_space;
  std::string name;          ///< of the group; of the history: empty is all
  std::uint64_t number = 0;  ///< history: after which serial; prefixes: how many "/" they have

  auto operator<=>(const Look&) const = default;
};

/// What was seen of it so far.
struct Looked {
  enum class State : std::uint8_t { going_on, done, not_found, too_large };

  State state = State::going_on;
  std::vector<std::string> pages;  ///< encoded replies of wire
  std::vector<std::string> names;  ///< of all_groups: each page's namespace; waiting_groups: group
  PrefixCounts prefixes;
  std::uint64_t bytes = 0;  ///< of the pages

  // Where it goes on.
  bool has_begun = false;
  std::uint64_t after_number = 0;
  std::string after_name;
  std::string name_space;
};

/// All groups at a glance, as far as they were looked at.
struct Glances {
  std::vector<GroupGlance> groups;  ///< by namespace, and name
  std::uint64_t bytes = 0;
  bool is_done = false;

  // Where it goes on.
  std::optional<std::string> name_space;  ///< nothing: at the first one
  std::string group;                      ///< behind this one of it; empty: at its first
};

}  // namespace muster::core
