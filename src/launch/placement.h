#pragma once

#include <optional>
#include <string>

#include "launch/options.h"
#include "muster/result.h"

namespace muster::launch {

/// Where this node's ranks are in a job whose nodes a person has numbered.
struct Placement {
  bool is_multi_node = false;  ///< more ranks than this node has
  int world_size = 1;
  int base_rank = 0;
  int node_rank = 0;
  int node_count = 1;  ///< if all nodes are of one size
  std::string master_addr;
  int master_port = 0;
};

/// Checks what was told, and computes the rest, by composer's rules. Of a single node nothing else
/// than zeros may be told; of several, one of base rank and node rank may be left out where nodes
/// are of one size, and MASTER_ADDR and MASTER_PORT must be told.
///
/// errors  invalid_argument
Result<Placement> place(const LaunchOptions& options);

}  // namespace muster::launch
