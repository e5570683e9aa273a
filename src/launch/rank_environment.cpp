#include "launch/rank_environment.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

// src/runtime/environment_names.h lists what a rank reads to learn its place. What another launcher
// has told this one must not be there any more: where that was Slurm or MPI, the ranks of this
// launcher are none of theirs.

namespace muster::launch {

namespace {

constexpr std::array<std::string_view, 2> asynchronous_errors{"NCCL_ASYNC_ERROR_HANDLING",
                                                              "TORCH_NCCL_ASYNC_ERROR_HANDLING"};

constexpr std::array<std::string_view, 25> names_of_place{
    "FS_LOCAL_RANK",    "GROUP_RANK",
    "GROUP_WORLD_SIZE", "JOB_COMPLETION_INDEX",
    "LOCAL_RANK",       "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",      "MASTER_PORT",
    "MPI_LOCALNRANKS",  "MPI_LOCALRANKID",
    "MUSTER_HOST_PID",  "MUSTER_NAMESPACE",
    "MUSTER_STORE",     "NODE_RANK",
    "NUM_NODES",
    "PMIX_NAMESPACE",  // without its rank, a program of PMIx would not begin
    "PMIX_RANK",        "RANK",
    "ROLE_NAME",        "ROLE_RANK",
    "ROLE_WORLD_SIZE",  "SLURM_LOCALID",
    "SLURM_NODEID",     "SLURM_PROCID",
    "WORLD_SIZE",
};

constexpr std::array<std::string_view, 3> prefixes_of_place{"OMPI_COMM_WORLD_", "PMI_",
                                                            "TORCHELASTIC_"};

bool is_of_place(std::string_view name) {
  return std::find(names_of_place.begin(), names_of_place.end(), name) != names_of_place.end() ||
         std::any_of(
             prefixes_of_place.begin(), prefixes_of_place.end(),
             [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; });
}

/// What is only a default.
void add_defaults(Variables& to, const RankPlace& place, const Variables& inherited) {
  to["PYTHONUNBUFFERED"] = "1";
  // As many threads as there are processors in each rank would be too many.
  if (place.local_world_size > 1 && find_variable(inherited, "OMP_NUM_THREADS") == nullptr)
    to["OMP_NUM_THREADS"] = "1";
  // Two names of one thing: the older one and the newer one say the same.
  const std::string* said = nullptr;
  for (const std::string_view name : asynchronous_errors)
    if (const std::string* const value = find_variable(inherited, name)) said = value;
  for (const std::string_view name : asynchronous_errors)
    if (find_variable(inherited, name) == nullptr) to[std::string(name)] = said ? *said : "1";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> variables_of(const RankPlace& place,
                                                              const Variables& inherited) {
  Variables all;
  const auto number = [&](const char* name, int value) { all[name] = std::to_string(value); };
  const auto text = [&](const char* name, const std::string& value) {
    if (!value.empty()) all[name] = value;
  };
  number("RANK", place.rank);
  number("WORLD_SIZE", place.world_size);
  number("LOCAL_RANK", place.local_rank);
  number("LOCAL_WORLD_SIZE", place.local_world_size);
  number("NODE_RANK", place.node_rank);
  number("GROUP_RANK", place.node_rank);
  if (place.node_count) number("NUM_NODES", *place.node_count);
  if (place.node_count) number("GROUP_WORLD_SIZE", *place.node_count);
  text("ROLE_NAME", place.role);
  number("ROLE_RANK", place.role_rank.value_or(place.rank));
  number("ROLE_WORLD_SIZE", place.role_world_size.value_or(place.world_size));
  text("MASTER_ADDR", place.master_addr);
  if (place.master_port) number("MASTER_PORT", *place.master_port);
  text("TORCHELASTIC_RUN_ID", place.job_id);
  number("TORCHELASTIC_RESTART_COUNT", place.attempt);
  number("TORCHELASTIC_MAX_RESTARTS", place.max_restarts);
  text("TORCHELASTIC_ERROR_FILE", place.error_file);
  all["TORCHELASTIC_USE_AGENT_STORE"] = place.has_agent_store ? "True" : "False";
  text("MUSTER_STORE", place.store);
  text("MUSTER_NAMESPACE", place.name_space);
  add_defaults(all, place, inherited);
  return {all.begin(), all.end()};
}

Variables cleaned(Variables inherited) {
  for (auto at = inherited.begin(); at != inherited.end();)
    at = is_of_place(at->first) ? inherited.erase(at) : std::next(at);
  return inherited;
}

Variables environment_of(const RankPlace& place, const Variables& inherited) {
  Variables environment = cleaned(inherited);
  for (auto& [name, value] : variables_of(place, inherited)) environment[name] = value;
  return environment;
}

}  // namespace muster::launch
