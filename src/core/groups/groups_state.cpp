#include "core/groups/groups_state.h"

#include <utility>

// Sees to what follows from an event: groups that were touched work until nothing is due, and what
// nobody needs goes. Nothing is deleted before, so that no step has to fear for its own group.

namespace muster::core {

/// Does what this event may still do; the backlog does the rest.
void EndedEpochs::add(std::unique_ptr<Epoch> epoch) {
  const bool is_first = epochs_.empty();
  epochs_.push_back(std::move(epoch));
  const int work_max = is_first ? effects_.work_left() : 0;
  if (work(work_max) == work_max) effects_.backlog().add(*this);
}

int EndedEpochs::work(int work_max) {
  int done = 0;
  while (done < work_max && !epochs_.empty()) {
    const int left = work_max - done;
    const int forgotten = epochs_.front()->streams.forget(left);
    done += forgotten;
    if (forgotten == left) break;
    epochs_.pop_front();
    effects_.spend(1);
    ++done;
  }
  return done;
}

void GroupsState::touch(Group& group) {
  if (std::exchange(group.dirty, true)) return;
  dirty.push_back(&group);
}

void GroupsState::work() {
  while (!dirty.empty()) {
    Group& group = *dirty.front();
    group.work();
    dirty.pop_front();
    group.dirty = false;
    if (group.unused()) groups.erase(groups.find(group.name()));
  }
  for (const std::uint64_t number : std::exchange(over, {})) {
    const auto epoch = epochs.find(number);
    if (epoch == epochs.end() || epoch->second->group != nullptr) continue;
    if (epoch->second->roster.reference_count != 0) continue;
    ended.add(std::move(epoch->second));
    epochs.erase(epoch);
  }
}

void GroupsState::reconsider(const Session& session) {
  for (;;) {
    const auto waiting = claimants.find(&session);
    if (waiting == claimants.end()) return;
    Joiner& first = waiting->second.first();  // the last one takes the entry with it
    first.group->judge_again(first);
  }
}

}  // namespace muster::core
