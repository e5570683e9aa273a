#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "communicator/agreement.h"
#include "communicator/failure_notice.h"
#include "nccl/communicator_impl.h"
#include "nccl/preflight.h"

namespace muster::nccl_internal {

/// The creation of one communicator, on one rank.
///
/// Life cycle: prepare (libraries, device) -> preflight: a rank that cannot take part, differs or
/// shares a device ends it for all ranks before NCCL is called -> rank 0 makes an id and broadcasts
/// it -> NCCL -> vote: all ranks keep the communicator, or none does.
class Creation {
 public:
  Creation(StatelessProcessGroup& group, int device, nccl::Options options,
           std::shared_ptr<Shared> shared);

  Result<std::shared_ptr<Impl>> run();

 private:
  std::optional<Error> refusal() const;
  Result<Prepared> prepare() const;
  Result<std::vector<PreflightReport>> run_preflight(const Result<Prepared>& prepared) const;
  Result<nccl::UniqueId> agree_on_id(const Prepared& prepared) const;
  Result<void> enter(const std::shared_ptr<Impl>& impl, const nccl::UniqueId& id,
                     communicator::FailureNotice& notice) const;

  const communicator::Agreement agreement_;
  const int device_;
  const nccl::Options options_;
  const std::shared_ptr<Shared> shared_;
};

int failed_attempts();
void forgive_attempts();

}  // namespace muster::nccl_internal
