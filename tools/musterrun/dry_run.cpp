#include "dry_run.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "launch/command.h"
#include "launch/placement.h"
#include "launch/rank_environment.h"

namespace musterrun {
namespace {

using muster::launch::LaunchOptions;
using muster::launch::Placement;
using muster::launch::RankPlace;
using muster::launch::Variables;

/// What a rendezvous decides.
constexpr std::array<std::string_view, 6> decided_there{
    "RANK", "WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE"};

std::string for_shell(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return std::string(word);
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

RankPlace place_of(const LaunchOptions& options, const Placement& placement, int local_rank) {
  RankPlace place;
  place.local_rank = local_rank;
  place.local_world_size = options.placement.process_count;
  place.role = options.role;
  place.job_id = options.job_id;
  place.max_restarts = options.max_restarts;
  if (!options.rendezvous.endpoint.empty()) return place;
  place.rank = placement.base_rank + local_rank;
  place.world_size = placement.world_size;
  place.node_rank = placement.node_rank;
  place.node_count = placement.node_count;
  place.master_addr = placement.master_addr;
  place.master_port = placement.master_port;
  return place;
}

bool is_open(const LaunchOptions& options, std::string_view name) {
  if (name == "TORCHELASTIC_USE_AGENT_STORE")
    return options.master.tcpstore != muster::launch::TcpStore::off;
  return !options.rendezvous.endpoint.empty() &&
         std::find(decided_there.begin(), decided_there.end(), name) != decided_there.end();
}

}  // namespace

std::string dry_run(const LaunchOptions& options, const Variables& environment) {
  Placement placement;
  if (options.rendezvous.endpoint.empty())
    placement = muster::launch::placement_of(options).value();
  std::string text;
  for (int local_rank = 0; local_rank < options.placement.process_count; ++local_rank) {
    const RankPlace place = place_of(options, placement, local_rank);
    Variables told = muster::launch::cleaned(environment);
    std::string variables;
    for (const auto& [name, value] : muster::launch::variables_of(place, environment)) {
      if (is_open(options, name)) continue;
      told[name] = value;
      variables += "  " + name + "=" + for_shell(value) + "\n";
    }
    text += "local rank " + std::to_string(local_rank) + ":";
    for (const std::string& word : muster::launch::command_of(options, told))
      text += " " + for_shell(word);
    text += "\n" + variables;
  }
  return text;
}

}  // namespace musterrun
