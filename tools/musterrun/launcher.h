#pragma once

#include "guardian_link.h"
#include "launch/options.h"
#include "launch/placement.h"
#include "launch/variables.h"
#include "muster/server.h"
#include "own_folder.h"

namespace musterrun {

/// What musterrun begins its work with.
struct LauncherSetup {
  muster::launch::LaunchOptions options;
  muster::launch::Placement placement;    ///< of nodes that are told by hand; else of one node
  muster::launch::Variables environment;  ///< inherited
  ForkedGuardian guardian;
  const OwnFolder* own_folder = nullptr;  ///< for what nobody keeps; removed at the end
  std::string job_id;
  std::string random;  ///< drawn, for names that no other one has
};

/// Runs the job as far as this node has a part in it, until it has ended.
///
/// returns  the exit code
int run_launcher(LauncherSetup setup);

}  // namespace musterrun
