#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "muster/runtime.h"
#include "runtime/rank_group.h"

// Which processes of a job share a node: each tells where it is, and all compute the same.

namespace muster::runtime {

/// What one rank tells the others of where it is. Numbers that nobody has told it are empty.
struct Whereabouts {
  std::string host;           ///< its name
  std::string boot_id;        ///< of the kernel; empty: not known
  std::uint64_t network = 0;  ///< the network namespace's inode; 0: not known
  ProcessInfo process;
  bool shares_files = false;  ///< it was told that all nodes have one file system
  std::optional<int> world_size;
  std::optional<int> rank;
  std::optional<int> local_world_size;
  std::optional<int> local_rank;
  std::optional<int> node_count;
  std::optional<int> node_rank;
};

/// That of this process.
///
/// errors  environment
Result<Whereabouts> own_whereabouts(const Environment& environment, const ProcessInfo& process);

std::string encode(const Whereabouts& where);
Result<Whereabouts> decode_whereabouts(std::string_view bytes);

/// Where each rank is. A node is what the launcher has numbered, if it has told all ranks their
/// node's rank; else ranks of one boot id, host name and network namespace are on one node. Nodes
/// are then numbered in the order of their first ranks.
///
/// all     what each rank has told, in the order of ranks
/// errors  mismatch (ranks: those that contradict each other)
Result<std::vector<JobPlace>> lay_out(const std::vector<Whereabouts>& all);

/// Each rank of the group tells the others where it is; all compute who is where. Collective.
///
/// errors  mismatch (as lay_out), environment, those of a collective
Result<Members> exchange_places(StatelessProcessGroup& group, const Environment& environment,
                                Duration timeout);

}  // namespace muster::runtime
