#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "failures/failing_calls.h"

namespace muster::test {

/// Which of the calls 1 to `count` are to fail in this process. Evenly one in twenty times
/// MUSTER_TEST_SCALE, with TLS one in 100, and of OpenSSL's calls one in 500; MUSTER_TEST_SHARD
/// "2/8": the third of eight parts of these. The first follows from MUSTER_TEST_SEED, else from the
/// day, so that the runs of twenty days at scale 1 try all. With MUSTER_TEST_PLAN
/// "allocation:17:1" that plan alone, where it is one of this kind.
std::vector<FailurePlan> plans(Fails what, std::uint64_t in_a_row, std::uint64_t count);

/// The command that repeats the plan with this program.
std::string again(FailurePlan plan);

/// What became of the plans of one kind.
struct Tally {
  std::uint64_t planned = 0;
  std::uint64_t struck = 0;   ///< so many calls there were indeed
  std::uint64_t refused = 0;  ///< the server did not start
  std::uint64_t ended = 0;    ///< the server ended in the midst, and said so

  /// Checks that most have struck, since the number of calls varies a little with the timing,
  /// and that no larger shares of the servers did not start or ended than given. Few may be more.
  void check(double refused_share_max, double ended_share_max) const;
};

/// On a busy machine a call may time out before anything has failed. Such a run shows nothing, and
/// is repeated, three times at most; then it counts.
template <class Run, class IsVoid>
auto repeated_while_void(const Run& run, const IsVoid& is_void) {
  auto told = run();
  for (int repetition = 0; repetition < 3 && is_void(told); ++repetition) told = run();
  return told;
}

}  // namespace muster::test
