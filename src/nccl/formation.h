#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "communicator/making.h"
#include "nccl/communicator_impl.h"
#include "nccl/roll_call.h"

namespace muster::nccl {

/// One making of a communicator, on one rank.
///
/// Life cycle: prepare (libraries, device) -> the roll is called: who cannot, differs or shares a
/// device ends it for all before NCCL is entered -> rank 0 makes an id and tells it -> NCCL ->
/// every rank reports: all have it, or none keeps it.
class Formation {
 public:
  Formation(StatelessProcessGroup& group, int device, NcclOptions options,
            std::shared_ptr<Shared> shared);

  Result<std::shared_ptr<NcclCommunicator::Impl>> run();

 private:
  using Impl = NcclCommunicator::Impl;

  std::optional<Error> refusal() const;
  Result<Ground> prepare() const;
  Result<std::vector<Presence>> call_roll(const Result<Ground>& ground) const;
  Result<NcclUniqueId> agree_on_id(const Ground& ground) const;
  Result<void> enter(Impl& impl, const NcclUniqueId& id) const;

  const communicator::Making making_;
  const int device_;
  const NcclOptions options_;
  const std::shared_ptr<Shared> shared_;
};

int failed_attempts();
void forgive_attempts();

}  // namespace muster::nccl
