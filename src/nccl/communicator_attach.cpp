#include "communicator/arguments.h"
#include "muster/codec.h"
#include "nccl/communicator_impl.h"

// A communicator outlives the store that it was made over: its group is formed again, by the same
// processes, and watched from then on.

MUSTER_BEGIN_NAMESPACE

Result<void> NcclCommunicator::Impl::attach(StatelessProcessGroup& group, Duration timeout) {
  return life_->attach(group, codec_id::nccl_communicator, timeout, ends_this());
}

Result<void> NcclCommunicator::attach(StatelessProcessGroup& group, Duration timeout) {
  if (!impl_) return communicator::moved_from("attach");
  const auto resolved = communicator::timeout_or(timeout, impl_->options().timeout);
  if (!resolved) return resolved.error();
  return impl_->attach(group, *resolved);
}

MUSTER_END_NAMESPACE
