#include "muster/nccl.h"

#include <chrono>
#include <utility>

#include "client/failure.h"
#include "communicator/timeouts.h"
#include "nccl/aborter.h"
#include "nccl/communicator_impl.h"
#include "nccl/creation.h"

// The public functions for one NCCL communicator.

MUSTER_BEGIN_NAMESPACE

namespace nccl {

using nccl_internal::Impl;

namespace {

/// The NCCL communicator behind a handle.
///
/// errors  invalid_argument (another kind), closed (moved from), forked
Result<std::shared_ptr<Impl>> impl_of(const Communicator& communicator,
                                      std::string_view operation) {
  const auto& impl = communicator.impl();
  if (auto refused = muster::communicator::refusal_of(impl, operation)) return *std::move(refused);
  if (impl->kind() == nccl_internal::kind) return std::static_pointer_cast<Impl>(impl);
  return impl->about(operation,
                     client::invalid_argument("communicator: its kind is " +
                                              std::string(impl->kind()) + ", not nccl"),
                     std::chrono::steady_clock::now());
}

}  // namespace

Result<Communicator> create(StatelessProcessGroup& group, int device, Options options) {
  auto made = nccl_internal::Creation(group, device, std::move(options),
                                      std::make_shared<nccl_internal::Shared>())
                  .run();
  if (!made) return std::move(made).error();
  return Communicator(*std::move(made));
}

Result<int> device(const Communicator& communicator) {
  const auto impl = impl_of(communicator, "device");
  if (!impl) return impl.error();
  return (*impl)->device().ordinal();
}

Result<void> with_native(Communicator& communicator,
                         const std::function<Result<void>(Handle handle)>& work, Duration timeout) {
  const auto impl = impl_of(communicator, "with_native");
  if (!impl) return impl.error();
  const auto refused = [&](Error error) {
    return (*impl)->about("with_native", std::move(error), std::chrono::steady_clock::now());
  };
  if (!work) return refused(client::invalid_argument("work: empty"));
  const auto resolved = muster::communicator::timeout_or(timeout, (*impl)->timeout());
  if (!resolved) return refused(resolved.error());
  return (*impl)->with_native(work, *resolved);
}

Result<Handle> native_handle(const Communicator& communicator) {
  const auto impl = impl_of(communicator, "native_handle");
  if (!impl) return impl.error();
  const auto handle = (*impl)->native_handle();
  if (handle) return handle;
  return (*impl)->about("native_handle", handle.error(), std::chrono::steady_clock::now());
}

Result<void> release_issuer(const Communicator& communicator) {
  const auto impl = impl_of(communicator, "release_issuer");
  if (!impl) return impl.error();
  auto released = (*impl)->release_issuer();
  if (released) return released;
  return (*impl)->about("release_issuer", std::move(released).error(),
                        std::chrono::steady_clock::now());
}

int failed_attempts() { return nccl_internal::failed_attempts(); }
void forgive_attempts() { nccl_internal::forgive_attempts(); }
int given_up_handles() { return nccl_internal::Aborter::given_up_count(); }

}  // namespace nccl

MUSTER_END_NAMESPACE
