#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "client/failure.h"
#include "nccl/communicator_impl.h"
#include "nccl/enqueue.h"
#include "nccl/functions.h"

// How an operation gets on its stream: enter the gate -> lock the device -> call NCCL -> wait until
// NCCL is no longer in progress -> leave the gate. A failure inside NCCL ends the communicator; a
// call that NCCL refuses to begin does not.

namespace muster::nccl_internal {
namespace {

/// How long the store has to report which rank is gone.
constexpr Duration cause_timeout{std::chrono::seconds(5)};

/// The communicator whose NCCL group is open on this thread.
thread_local const void* grouping = nullptr;

/// An NCCL group on this thread. It is ended also when the host's function throws.
class OpenGroup {
 public:
  OpenGroup(const nccl::Functions& nccl, const void* ranks_where)
      : nccl_(nccl), before_(grouping), result_(nccl.group_start()) {
    if (result_ == success) grouping = ranks_where;
  }
  ~OpenGroup() {
    if (result_ == success) end();
  }
  OpenGroup(const OpenGroup&) = delete;
  OpenGroup& operator=(const OpenGroup&) = delete;

  int result() const { return result_; }
  int end() {
    result_ = in_progress;  // ended
    grouping = before_;
    return nccl_.group_end();
  }

 private:
  const nccl::Functions& nccl_;
  const void* const before_;
  int result_;
};

bool is_refused(int result) { return result == invalid_argument || result == invalid_usage; }

}  // namespace

/// NCCL only reports that a peer is gone; the store knows which one, and why.
Error Impl::failure_of(const Names& names, int result, Clock::time_point until) {
  Error error = nccl_error(functions(), result, names.function, handle_);
  if (result != remote_error) return error;
  const auto left = std::chrono::duration_cast<Duration>(until - Clock::now());
  return lifecycle().await_cause(std::min(left, cause_timeout)).value_or(std::move(error));
}

Result<void> Impl::see_done(const Names& names, int result, Clock::time_point until) {
  if (auto reason = gate().reason()) return *std::move(reason);  // the abort removes the operation
  if (result == success) return {};
  if (is_refused(result)) return nccl_error(functions(), result, names.function, handle_);
  Result<void> settled;
  if (result == in_progress) {
    settled = settle(until);
    const bool is_remote = !settled && settled.error().code == ErrorCode::nccl &&
                           settled.error().actual == remote_error;
    if (is_remote) settled = failure_of(names, remote_error, until);
  } else {
    settled = failure_of(names, result, until);
  }
  if (!settled) end(settled.error());
  return settled;
}

Result<void> Impl::issue(const Names& names, Duration timeout, const Enqueue& enqueue) {
  const auto began = Clock::now();
  const auto told = [&](Result<void> result) -> Result<void> {
    if (result) return result;
    return about(names.operation, std::move(result).error(), began);
  };
  const auto pass = gate().enter();
  if (!pass) return told(pass.error());
  const auto lock = lock_device(DeviceLocks::Role::issuer, began + timeout);
  if (!lock) return told(lock.error());
  if (grouping != nullptr && grouping != this) {
    return told(client::invalid_argument("inside `grouped` of another communicator"));
  }
  const Device::Current current(device());
  const int result = enqueue();
  if (grouping == this && (result == success || result == in_progress)) return {};
  return told(see_done(names, result, began + timeout));
}

std::optional<Error> Impl::error() {
  Result<void> settled;
  if (const auto pass = gate().enter(); pass && grouping == nullptr) {
    if (const auto lock = lock_device(DeviceLocks::Role::onlooker, Clock::now())) {
      settled = settle(Clock::now());
    }
  }
  if (settled || settled.error().code != ErrorCode::nccl) return gate().reason();
  if (settled.error().actual == remote_error) {
    const auto cause = lifecycle().await_cause(Duration{0});
    const auto now = Clock::now().time_since_epoch().count();
    Clock::rep since = 0;
    if (remote_since_.compare_exchange_strong(since, now)) since = now;
    if (!cause && Clock::duration(now - since) < cause_timeout) return gate().reason();
    if (cause) settled = *cause;
  }
  end(settled.error());
  return gate().reason();
}

Result<void> Impl::perform(const communicator::OperationCall& call) {
  const Names names{call.name, function_of(call.operation)};
  return issue(names, call.timeout, [&] {
    return enqueue(call, functions(), handle_, membership().rank, membership().world_size);
  });
}

Result<void> Impl::grouped(const std::function<Result<void>()>& calls, Duration timeout) {
  Result<void> called;
  auto issued = issue({"grouped", "ncclGroupEnd"}, timeout, [&] {
    OpenGroup group(functions(), this);
    if (group.result() != success) return group.result();
    called = calls();
    return group.end();
  });
  return called ? issued : called;
}

Result<void> Impl::with_native(const std::function<Result<void>(nccl::Handle handle)>& work,
                               Duration timeout) {
  Result<void> worked;
  auto issued = issue({"with_native", "NCCL"}, timeout, [&] {
    worked = work(handle_);
    return in_progress;  // waits for what `work` has left in progress
  });
  return worked ? issued : worked;
}

Result<nccl::Handle> Impl::native_handle() const {
  if (auto reason = gate().reason()) return *std::move(reason);
  if (options_.on_loss == OnLoss::notify) return handle_.load();
  return client::invalid_argument(
      "native_handle needs OnLoss::notify: a loss would abort the handle under the kernels that "
      "use it");
}

}  // namespace muster::nccl_internal
