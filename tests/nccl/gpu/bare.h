#pragma once

#include <cstddef>

#include "muster/nccl_functions.h"
#include "nccl/gpu/numbers.h"

namespace muster::test::gpu {

/// NCCL's own functions; of the library that communicators use.
const nccl::Functions& nccl_functions(const Rank& rank);
/// One that is not among those.
void* nccl_symbol(const Rank& rank, const char* name);

/// A communicator of NCCL's own, without Muster's: what a host makes of an id. Collective.
class Bare {
 public:
  Bare(Rank& rank, StatelessProcessGroup& group, nccl::Mode mode);
  ~Bare();
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  nccl::Handle handle() const { return handle_; }
  const nccl::Functions& functions() const { return functions_; }

  /// What came of a call that gave this result: asks until NCCL is no longer in progress.
  int settled(int result) const;
  /// ncclCommGetAsyncError.
  int state() const;
  int all_reduce(const Sum& sum) const;
  /// Ends it in order, which else the destructor does not.
  int destroy();

 private:
  const nccl::Functions& functions_;
  nccl::Handle handle_ = nullptr;
};

}  // namespace muster::test::gpu
