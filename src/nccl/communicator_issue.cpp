#include <utility>

#include "client/failure.h"
#include "communicator/arguments.h"
#include "nccl/communicator_impl.h"
#include "nccl/functions.h"

// How an operation is put on its stream: into the gate -> is it this thread's turn? -> NCCL ->
// until NCCL is not in progress any more -> out of the gate. What goes wrong inside of NCCL ends
// the communicator; what NCCL refuses to begin does not.

MUSTER_BEGIN_NAMESPACE

using nccl::Device;

namespace {

constexpr int success = 0;
constexpr int invalid_argument = 4;
constexpr int invalid_usage = 5;
constexpr int in_progress = 7;

bool is_refused(int result) { return result == invalid_argument || result == invalid_usage; }

}  // namespace

Result<void> NcclCommunicator::Impl::see_done(const Subject& subject, int result,
                                              Clock::time_point began) {
  if (result == success) {
    if (auto reason = gate().reason()) return *std::move(reason);  // its work is aborted next
    return {};
  }
  if (is_refused(result)) {
    return nccl::nccl_error(functions(), result, subject.function, handle_);
  }
  const auto timeout = communicator::timeout_or(subject.timeout, options_.timeout);
  if (!timeout) return timeout.error();
  Result<void> settled = result == in_progress
                             ? settle(began + *timeout)
                             : nccl::nccl_error(functions(), result, subject.function, handle_);
  if (!settled) end(settled.error());
  return settled;
}

Result<void> NcclCommunicator::Impl::issue(const Subject& subject, const Enqueue& enqueue) {
  const auto began = Clock::now();
  const auto told = [&](Result<void> result) -> Result<void> {
    if (result) return result;
    return about(subject.operation, std::move(result).error(), began);
  };
  const auto pass = gate().enter();
  if (!pass) return told(pass.error());
  if (auto checked = shared_->issuers.check(ground_.device->ordinal()); !checked) {
    return told(std::move(checked));
  }
  const Device::Current current(device());
  const int result = enqueue(functions(), handle_);
  const bool is_in_group = group_thread_ == std::this_thread::get_id();
  if (is_in_group && (result == success || result == in_progress)) return {};
  return told(see_done(subject, result, began));
}

Result<void> NcclCommunicator::Impl::grouped(const Subject& subject,
                                             const std::function<Result<void>()>& calls) {
  Result<void> called;
  auto issued = issue(subject, [&](const NcclFunctions& nccl, NcclHandle) {
    if (const int result = nccl.group_start(); result != success) return result;
    group_thread_ = std::this_thread::get_id();
    called = calls();
    group_thread_ = std::thread::id();
    return nccl.group_end();
  });
  return called ? issued : called;
}

Result<void> NcclCommunicator::Impl::with_native(
    const Subject& subject, const std::function<Result<void>(NcclHandle handle)>& work) {
  Result<void> worked;
  auto issued = issue(subject, [&](const NcclFunctions&, NcclHandle handle) {
    worked = work(handle);
    return in_progress;  // what it left so is waited for
  });
  return worked ? issued : worked;
}

MUSTER_END_NAMESPACE
