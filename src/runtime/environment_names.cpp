#include "runtime/environment_names.h"

#include <array>

namespace muster::runtime {

namespace {

using enum Launcher;

constexpr std::array says_world_size{
    NumberVariable{"WORLD_SIZE", common}, NumberVariable{"SLURM_STEP_NUM_TASKS", slurm},
    NumberVariable{"OMPI_COMM_WORLD_SIZE", open_mpi}, NumberVariable{"PMI_SIZE", pmi}};
constexpr std::array says_rank{NumberVariable{"RANK", common},
                               NumberVariable{"SLURM_PROCID", slurm},
                               NumberVariable{"OMPI_COMM_WORLD_RANK", open_mpi},
                               NumberVariable{"PMI_RANK", pmi},
                               NumberVariable{"PMIX_RANK", pmix},
                               NumberVariable{"JOB_COMPLETION_INDEX", kubernetes}};
// Slurm's is in a list of all nodes, SLURM_STEP_TASKS_PER_NODE, which is read elsewhere.
constexpr std::array says_local_world_size{NumberVariable{"LOCAL_WORLD_SIZE", common},
                                           NumberVariable{"OMPI_COMM_WORLD_LOCAL_SIZE", open_mpi},
                                           NumberVariable{"MPI_LOCALNRANKS", pmi}};
constexpr std::array says_local_rank{
    NumberVariable{"LOCAL_RANK", common}, NumberVariable{"SLURM_LOCALID", slurm},
    NumberVariable{"OMPI_COMM_WORLD_LOCAL_RANK", open_mpi}, NumberVariable{"MPI_LOCALRANKID", pmi}};
constexpr std::array says_node_count{NumberVariable{"NUM_NODES", common},
                                     NumberVariable{"GROUP_WORLD_SIZE", common},
                                     NumberVariable{"SLURM_STEP_NUM_NODES", slurm}};
constexpr std::array says_node_rank{NumberVariable{"NODE_RANK", common},
                                    NumberVariable{"GROUP_RANK", common},
                                    NumberVariable{"SLURM_NODEID", slurm}};
constexpr std::array says_replica_rank{NumberVariable{"REPLICA_RANK", common},
                                       NumberVariable{"REPLICA_GROUP_ID", common}};
constexpr std::array says_fs_local_rank{NumberVariable{"FS_LOCAL_RANK", common}};

}  // namespace

Span<const NumberVariable> variables_of(JobNumber number) {
  switch (number) {
    case JobNumber::world_size: return says_world_size;
    case JobNumber::rank: return says_rank;
    case JobNumber::local_world_size: return says_local_world_size;
    case JobNumber::local_rank: return says_local_rank;
    case JobNumber::node_count: return says_node_count;
    case JobNumber::node_rank: return says_node_rank;
    case JobNumber::replica_rank: return says_replica_rank;
    case JobNumber::fs_local_rank: return says_fs_local_rank;
  }
  return {};
}

std::string_view first_variable_of(JobNumber number) { return variables_of(number)[0].name; }

}  // namespace muster::runtime
