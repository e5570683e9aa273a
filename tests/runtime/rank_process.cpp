#include <csignal>
#include <iostream>
#include <string_view>
#include <vector>

#include "muster/runtime.h"

// One process of a job: `runtime_rank ROLE`, told its place by the environment.
//
//     aborts   ends itself by Runtime::abort when it is in the world, and in a group of all ranks,
//              and gets SIGUSR1
//     waits    waits in the world's barrier, or (waits_in_group) in that group's, and prints why
//              that has ended

namespace {

int ended(const muster::Error& error) {
  std::cout << name_of(error.code) << ": " << error.detail;
  for (const muster::RankReport& rank : error.ranks) std::cout << "; rank " << rank.rank;
  std::cout << std::endl;
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const std::string_view role = words[1];
  muster::Runtime runtime;
  if (auto begun = runtime.init(); !begun) return ended(begun.error());
  std::vector<int> all = runtime.world().world_ranks();
  auto group = runtime.subgroup(all);
  if (!group) return ended(group.error());
  std::cout << "ready" << std::endl;
  int received = 0;
  if (role == "aborts") {
    sigwait(&signals, &received);
    runtime.abort(7, "the loss is nan");
  }
  muster::RankGroup& waits_in = role == "waits_in_group" ? *group : runtime.world();
  const auto met = waits_in.group()->barrier();
  if (met) return 1;
  const int code = ended(met.error());
  // Whoever has heard of it first would leave the groups that others wait in: they would hear that.
  sigwait(&signals, &received);
  return code;
}
