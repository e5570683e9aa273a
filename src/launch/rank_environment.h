#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/variables.h"

namespace muster::launch {

/// What a rank is told of itself and its job. Empty texts, and numbers that are none, are not told.
struct RankPlace {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  int node_rank = 0;
  std::optional<int> node_count;
  std::string role;
  /// Among the ranks of the same role; none: all ranks have it.
  std::optional<int> role_rank;
  std::optional<int> role_world_size;
  std::string master_addr;
  std::optional<int> master_port;
  bool has_agent_store = false;  ///< a TCPStore is at that port, so rank 0 hosts none
  std::string job_id;
  int attempt = 0;  ///< how often the job was begun before
  int max_restarts = 0;
  std::string error_file;  ///< where it may write why it has failed
  std::string store;       ///< the address of the job's server
  std::string name_space;  ///< of this attempt, on that server
};

/// The variables that a rank gets, by name. docs/musterrun.md has the table of them.
///
/// inherited  the launcher's own; of what is only a default those stay that are there
std::vector<std::pair<std::string, std::string>> variables_of(const RankPlace& place,
                                                              const Variables& inherited);

/// What the ranks inherit: without the variables that tell a process of its own place in a job, and
/// so are not true of them.
Variables cleaned(Variables inherited);

/// Both together: the whole environment of a rank.
Variables environment_of(const RankPlace& place, const Variables& inherited);

}  // namespace muster::launch
