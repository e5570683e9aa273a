#pragma once

#include <string>

#include "muster/signal_file.h"
#include "runtime/files.h"
#include "support/server.h"

// Ranks that share a folder of signals: threads, each with an environment and a SignalFolder.

namespace muster::test {

inline Environment::Variables signal_variables(int rank, int world_size, int node_count = 1) {
  const int local_world_size = world_size / node_count;
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world_size)},
          {"LOCAL_RANK", std::to_string(rank % local_world_size)},
          {"LOCAL_WORLD_SIZE", std::to_string(local_world_size)},
          {"NODE_RANK", std::to_string(rank / local_world_size)},
          {"MASTER_ADDR", "10.0.0.1"},
          {"MASTER_PORT", "29400"}};
}

inline SignalFolder open_signals(const TestFolder& folder, const Environment::Variables& variables,
                                 const SignalFolderOptions& options = {}) {
  return must(SignalFolder::open(folder.path(), Environment(variables), options));
}

inline TurnOptions patient_for(Duration longest) {
  TurnOptions options;
  options.silence_max = options.arrival_max = longest;
  return options;
}

}  // namespace muster::test
