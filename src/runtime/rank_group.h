#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/runtime.h"
#include "runtime/communicator_kinds.h"

namespace muster::runtime {

class TensorState;

/// The name of the group of these ranks, equal on all of them: "world/0,2,5", behind it the
/// dimension of a mesh that they are along, "@data", and `name`. Of many ranks it has their number
/// and a digest.
///
/// number  of the group among those that its members have formed, from 1: "world/0,2,5#2"
std::string subgroup_name(std::string_view world, const std::vector<int>& world_ranks, int number,
                          std::string_view dimension, std::string_view name);

/// Who is in a group, by its own ranks.
struct Members {
  std::vector<int> world_ranks;
  std::vector<JobPlace> places;
  bool share_files = false;  ///< one file system for all nodes of the job
};

/// Adds to the ranks of an error which processes they are. All ranks of a group that has formed are
/// there.
///
/// group  null: of a group whose processes are not known
void introduce(Error& error, const RankGroup::Impl* group);

/// The groups of one runtime that live, for an abort that has to tell the members of all of them.
///
/// threads  any
class LiveGroups {
 public:
  void add(RankGroup::Impl& group);
  void remove(RankGroup::Impl& group);

  /// Tells the members of all why this process ends, and aborts the communicators. Waits until both
  /// are done, but not longer than that: the process then ends in any case.
  void abort_all(std::string_view reason, Duration wait);

 private:
  std::mutex mutex_;
  std::set<RankGroup::Impl*> groups_;
};

}  // namespace muster::runtime

MUSTER_BEGIN_NAMESPACE

class RankGroup::Impl {
 public:
  Impl(StatelessProcessGroup group, runtime::Members members,
       std::shared_ptr<runtime::LiveGroups> live);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  StatelessProcessGroup& group() { return group_; }
  const std::vector<int>& world_ranks() const { return members_.world_ranks; }
  const std::vector<JobPlace>& places() const { return members_.places; }
  const runtime::Members& members() const { return members_; }
  Communicator* communicator(std::string_view device);
  bool has_communicators() const { return !communicators_.empty(); }

  /// Makes the communicators, in the order of devices. Collective.
  Result<void> make_communicators(const runtime::CommunicatorKinds& kinds,
                                  const std::vector<CommunicatorMaker>& makers, int device,
                                  Duration timeout);
  /// Ends them in order.
  Result<void> close_communicators(Duration timeout);
  void abort_communicators();
  /// What calls on tensors keep.
  runtime::TensorState& tensors() { return *tensors_; }

  /// For each rank the one of lowest local rank on its node.
  std::vector<int> leaders_on_nodes() const;
  /// For each rank the first one that has its file system.
  std::vector<int> leaders_on_file_systems() const;
  /// Calls of turns.h are numbered, from 1; all ranks call the same ones.
  void begin_turn() { ++turn_; }
  std::uint64_t turn() const { return turn_; }

 private:
  StatelessProcessGroup group_;
  const runtime::Members members_;
  std::uint64_t turn_ = 0;
  std::map<std::string, Communicator, std::less<>> communicators_;
  std::unique_ptr<runtime::TensorState> tensors_;
  std::shared_ptr<runtime::LiveGroups> live_;
};

MUSTER_END_NAMESPACE
