#pragma once

#include <string>

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
  void leave();

 private:
  MusterDialect& dialect(int rank);
  template <class Request>
  Json measure(Request&& request, bool confirms);
  template <class Work>
  Json cost_of(Work&& work);

  const Subject& subject_;
  Swarm swarm_;
  std::uint64_t epoch_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace muster::bench
