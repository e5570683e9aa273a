#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "muster/inspected.h"
#include "muster/types.h"

namespace muster::core {

/// What can be seen of a group at a glance: who is where, who waits for whom. Plain data, for a
/// thread that is not that of the engine. Two of a group in which nothing has changed are equal,
/// whenever they are taken: times are points in time.
struct GroupGlance {
  /// A process that is told of.
  struct Told {
    std::uint32_t rank = 0;
    ProcessId id;
    std::string host;
    std::uint32_t pid = 0;
    std::string label;

    bool operator==(const Told&) const = default;
  };

  std::string name_space;
  std::string name;
  std::uint64_t epoch = 0;  ///< 0: it forms
  std::uint32_t world_size = 0;
  std::uint32_t candidates = 0;
  GroupCondition state = GroupCondition::working;
  base::Instant since{};  ///< begin of the state
  std::vector<std::pair<RankCondition, std::uint32_t>> ranks;
  std::vector<std::pair<int, int>> waits_for;
  std::vector<std::pair<int, int>> waiting;
  std::string call;
  std::uint64_t round = 0;         ///< of the call; 0: it is of none
  std::vector<Told> told;          ///< the first of those that are waited for, or were lost
  std::uint16_t failure_code = 0;  ///< 0: none
  std::string failure;             ///< encoded

  bool operator==(const GroupGlance&) const = default;

  /// What it takes, about.
  std::uint64_t bytes() const;
};

struct GroupsState;

/// Groups behind `after` at a glance, by name, until they weigh so much: each rank 1, and each
/// group a few.
///
/// returns  whether there are more
bool glance_at(const GroupsState& state, const std::string& after, std::uint64_t weight_max,
               std::vector<GroupGlance>& glances);

}  // namespace muster::core
