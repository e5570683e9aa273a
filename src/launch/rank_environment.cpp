#include "launch/rank_environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

namespace muster::launch {

namespace {

/// Of an outer launcher; a rank that believed them would take itself for another one.
constexpr std::array outer_names = {std::string_view("SLURM_PROCID"),
                                    std::string_view("SLURM_LOCALID"),
                                    std::string_view("SLURM_STEP_ID"),
                                    std::string_view("PMI_RANK"),
                                    std::string_view("PMI_SIZE"),
                                    std::string_view("PMIX_RANK"),
                                    std::string_view("MPI_LOCALRANKID"),
                                    std::string_view("MPI_LOCALNRANKS"),
                                    std::string_view("JOB_COMPLETION_INDEX"),
                                    std::string_view("BASE_RANK"),
                                    std::string_view("REPLICA_RANK"),
                                    std::string_view("FS_LOCAL_RANK")};
constexpr std::array outer_beginnings = {std::string_view("OMPI_COMM_WORLD_"),
                                         std::string_view("TORCHELASTIC_"),
                                         std::string_view("GROUP_"), std::string_view("ROLE_")};

bool is_of_outer_launcher(std::string_view name) {
  const auto begins = [name](std::string_view beginning) {
    return name.substr(0, beginning.size()) == beginning;
  };
  return std::find(outer_names.begin(), outer_names.end(), name) != outer_names.end() ||
         std::any_of(outer_beginnings.begin(), outer_beginnings.end(), begins);
}

}  // namespace

Variables variables_of(const RankPlace& place, const std::vector<std::string>& inherited) {
  std::map<std::string, std::string> all;
  for (const std::string& each : inherited) {
    const auto equals = each.find('=', 1);
    if (equals == std::string::npos) continue;
    std::string name = each.substr(0, equals);
    if (!is_of_outer_launcher(name)) all[std::move(name)] = each.substr(equals + 1);
  }
  const auto tell = [&all](const char* name, const std::string& value) { all[name] = value; };
  const auto number = [&tell](const char* name, int value) { tell(name, std::to_string(value)); };
  number("RANK", place.rank);
  number("WORLD_SIZE", place.world_size);
  number("LOCAL_RANK", place.local_rank);
  number("LOCAL_WORLD_SIZE", place.local_world_size);
  number("NODE_RANK", place.node_rank);
  number("NUM_NODES", place.node_count);
  number("GROUP_RANK", place.node_rank);
  number("GROUP_WORLD_SIZE", place.node_count);
  number("ROLE_RANK", place.rank);
  number("ROLE_WORLD_SIZE", place.world_size);
  tell("ROLE_NAME", place.role);
  tell("MASTER_ADDR", place.master_addr);
  number("MASTER_PORT", place.master_port);
  number("TORCHELASTIC_RESTART_COUNT", place.restart_count);
  number("TORCHELASTIC_MAX_RESTARTS", place.restarts_max);
  tell("TORCHELASTIC_RUN_ID", place.job_id);
  tell("TORCHELASTIC_ERROR_FILE", place.error_file);
  tell("TORCHELASTIC_USE_AGENT_STORE", "False");
  const char* const spellings[] = {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"};
  const bool has_first = all.count(spellings[0]) > 0;
  const bool has_second = all.count(spellings[1]) > 0;
  if (!has_first) all[spellings[0]] = has_second ? all[spellings[1]] : "1";
  if (!has_second) all[spellings[1]] = all[spellings[0]];
  if (place.local_world_size > 1) all.emplace("OMP_NUM_THREADS", "1");
  all.emplace("PYTHONUNBUFFERED", "1");
  if (!place.store.empty()) {
    tell("MUSTER_STORE", place.store);
    tell("MUSTER_NAMESPACE", place.name_space);
  }
  return {all.begin(), all.end()};
}

}  // namespace muster::launch
