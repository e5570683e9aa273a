#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/group/group_watch.h"
#include "client/handlers.h"
#include "muster/error.h"
#include "muster/process_group_options.h"

namespace muster::client {

/// What those who hear of a loss cannot know otherwise.
struct GroupIdentity {
  std::string group;
  std::uint64_t epoch = 0;
  int world_size = 0;
  std::string where;
};

/// Who hears of what ends or interrupts a group's epoch, or ends this process's part in it; each
/// rank's loss, and each interruption, once.
class GroupLosses {
 public:
  GroupLosses(GroupIdentity identity, const GroupOptions& options, const Handlers& handlers);

  GroupWatches& watches() { return watches_; }

  /// Ranks were lost or have left. On the I/O thread.
  void lost(Error error);
  /// The group was interrupted, as an event or the failure of a round tells. On the I/O thread.
  void interrupted(Error error);
  /// This handle is over.
  void end(Error why) { watches_.tell(named(std::move(why))); }

 private:
  Error first_told(Error error);
  Error named(Error error) const;

  const GroupIdentity identity_;
  const std::function<void(const Error& error)> on_loss_;
  const std::function<void(const Error& error)> on_leave_;
  const Handlers& handlers_;
  GroupWatches watches_;
  std::vector<bool> told_ranks_;         ///< of whose loss was told; the I/O thread's
  std::uint64_t interrupted_round_ = 0;  ///< of the last interruption that was told; as above
};

}  // namespace muster::client
