#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/options.h"
#include "muster/result.h"

namespace muster::launch {

/// Which ranks of the job are on this node.
struct Placement {
  int world_size = 1;
  int base_rank = 0;  ///< its ranks are base_rank, base_rank + 1, ...
  int process_count = 1;
  int node_rank = 0;
  /// None: nodes have different numbers of processes, and nobody has said how many nodes there are.
  std::optional<int> node_count = 1;
  bool is_multi_node = false;
  std::string master_addr = "127.0.0.1";
  std::optional<int> master_port;  ///< none: one is chosen; of a single node alone
  std::vector<std::string> warnings;
};

/// Where the ranks of this node are, of options whose nodes were told by hand.
///
/// Of node_rank and base_rank one is enough if all nodes have as many processes. Without world_size
/// it is `nodes` times the processes of this node.
///
/// errors  invalid_argument (`detail`: the numbers that do not fit together, and the variables that
///         they are from)
Result<Placement> placement_of(const LaunchOptions& options);

}  // namespace muster::launch
