#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dialect_muster.h"
#include "run.h"
#include "swarm.h"
#include "wire/operation.h"

namespace muster::bench {

/// All ranks of a group, each a session of its own, on this thread alone.
class Ranks {
 public:
  explicit Ranks(const Subject& subject) : subject_(subject), swarm_(subject) {}

  int size() const { return swarm_.size(); }

  /// Connects so many, each with its hello.
  Json connect(int count);

  /// All ranks join a group that nobody has used.
  Json join();
  /// One round, which all ranks call.
  ///
  /// value  of each rank (all_gather), or of rank 0 alone (broadcast)
  Json round(wire::Collective collective, const std::string& value);
  /// A barrier; `look` runs while all ranks but the last one wait in it.
  void barrier_around(const std::function<void()>& look);
  /// How long a barrier takes, also of a server that others keep busy.
  double barrier_us();
  /// Each rank's heartbeat is answered.
  Json heartbeats();
  void leave();
  /// All connections are cut, and all ranks come back; throws if one is not in its session then.
  Json reconnect();

 private:
  /// From the first request on, when each rank had its reply.
  using Times = std::vector<double>;

  MusterDialect& dialect(int rank);
  template <class Append>
  Times exchange(Append&& append, bool confirms);
  template <class Append>
  Json measure(Append&& append, bool confirms);
  void append_call(int rank, wire::Collective collective, const std::string& value);

  const Subject& subject_;
  Swarm swarm_;
  std::uint64_t epoch_ = 0;
  std::uint64_t round_ = 0;
};

/// The least that a barrier costs: each rank writes once, is written to once, when all have come,
/// and writes once more, that it has heard of it; the host is written to when all others have.
class FloorRanks {
 public:
  FloorRanks(const Subject& echo, int count) : echo_(echo), swarm_(echo) { swarm_.connect(count); }

  Json barrier();
  double barrier_us();

 private:
  std::vector<double> meet();

  const Subject& echo_;
  Swarm swarm_;
};

}  // namespace muster::bench
