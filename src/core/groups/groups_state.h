#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/groups/group.h"
#include "core/groups/history/history.h"

namespace muster::core {

/// Epochs that nobody refers to any more. What their streams have left goes in pieces.
class EndedEpochs final : public Backlog::Job {
 public:
  explicit EndedEpochs(EffectList& effects) : effects_(effects) {}

  bool empty() const { return epochs_.empty(); }
  void add(std::unique_ptr<Epoch> epoch);
  int work(int work_max) override;

 private:
  EffectList& effects_;
  std::deque<std::unique_ptr<Epoch>> epochs_;
};

/// All groups of one namespace, and what they share.
struct GroupsState {
  GroupsState(EngineServices& its_services, const Accounts& its_accounts, Recorder its_recorder)
      : services(its_services),
        accounts(its_accounts),
        recorder(its_recorder),
        ended(its_services.effects()) {}
  GroupsState(const GroupsState&) = delete;
  GroupsState& operator=(const GroupsState&) = delete;

  void touch(Group& group);
  /// Until nothing is left to do: groups work, what nobody needs goes.
  void work();
  /// The claimants that wait for a sign of `session` are judged again.
  void reconsider(const Session& session);

  EngineServices& services;
  const Accounts& accounts;
  const Recorder recorder;
  Objects objects;
  std::unordered_map<std::uint64_t, std::unique_ptr<Epoch>> epochs;
  EndedEpochs ended;
  Claimants claimants;
  std::map<std::string, std::unique_ptr<Group>, std::less<>> groups;
  std::deque<Group*> dirty;
  std::vector<std::uint64_t> over;  ///< epochs that nobody may refer to any more
  std::uint64_t last_arrival = 0;
};

}  // namespace muster::core
