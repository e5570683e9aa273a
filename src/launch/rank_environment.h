#pragma once

#include <string>
#include <utility>
#include <vector>

namespace muster::launch {

/// What one rank is told.
struct RankPlace {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  int node_rank = 0;
  int node_count = 1;
  std::string role;
  std::string master_addr;
  int master_port = 0;
  int restart_count = 0;
  int restarts_max = 0;
  std::string job_id;
  std::string error_file;
  std::string store;       ///< empty: as inherited
  std::string name_space;  ///< with `store`
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// The variables of a rank: those that are inherited, without what an outer launcher has told, and
/// what torchrun and musterrun tell. docs/musterrun.md has the table.
///
/// inherited  "NAME=value"
Variables variables_of(const RankPlace& place, const std::vector<std::string>& inherited);

}  // namespace muster::launch
