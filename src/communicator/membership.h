#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/process_group.h"

namespace muster::communicator {

/// The epoch that a communicator belongs to, and this process's rank there.
struct Membership {
  explicit Membership(const StatelessProcessGroup& of)
      : group(of.name()),
        epoch(of.epoch()),
        where(of.store().address()),
        rank(of.rank()),
        world_size(of.world_size()) {}

  std::string group;
  std::uint64_t epoch = 0;
  std::string where;  ///< the server's address
  int rank = 0;
  int world_size = 0;
  std::vector<ProcessId> processes;  ///< by rank
};

}  // namespace muster::communicator
