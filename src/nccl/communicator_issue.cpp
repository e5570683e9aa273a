#include <algorithm>
#include <chrono>
#include <optional>
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
using nccl::in_progress;
using nccl::remote_error;
using nccl::success;

namespace {

constexpr Duration patience_for_cause{std::chrono::seconds(5)};

/// Whose NCCL group is open on this thread.
thread_local const void* grouping = nullptr;

/// NCCL's group of this thread, open as long as this lives, also when what it holds throws.
class OpenGroup {
 public:
  OpenGroup(const NcclFunctions& nccl, const void* whose)
      : nccl_(nccl), before_(grouping), result_(nccl.group_start()) {
    if (result_ == success) grouping = whose;
  }
  ~OpenGroup() {
    if (result_ == success) end();
  }
  OpenGroup(const OpenGroup&) = delete;
  OpenGroup& operator=(const OpenGroup&) = delete;

  int result() const { return result_; }
  int end() {
    result_ = in_progress;  // no more
    grouping = before_;
    return nccl_.group_end();
  }

 private:
  const NcclFunctions& nccl_;
  const void* const before_;
  int result_;
};

bool is_refused(int result) {
  return result == nccl::invalid_argument || result == nccl::invalid_usage;
}

}  // namespace

/// What NCCL itself knows of a peer that is gone is only that it is: the store says who and why.
Error NcclCommunicator::Impl::trouble_of(const Subject& subject, int result,
                                         Clock::time_point until) {
  Error error = nccl::nccl_error(functions(), result, subject.function, handle_);
  if (result != remote_error) return error;
  const auto left = std::chrono::duration_cast<Duration>(until - Clock::now());
  return life().await_cause(std::min(left, patience_for_cause)).value_or(std::move(error));
}

Result<void> NcclCommunicator::Impl::see_done(const Subject& subject, int result,
                                              Clock::time_point until) {
  if (auto reason = gate().reason()) return *std::move(reason);  // its work is aborted next
  if (result == success) return {};
  if (is_refused(result)) {
    return nccl::nccl_error(functions(), result, subject.function, handle_);
  }
  Result<void> settled;
  if (result == in_progress) {
    settled = settle(until);
    const bool is_remote = !settled && settled.error().code == ErrorCode::nccl &&
                           settled.error().actual == remote_error;
    if (is_remote) settled = trouble_of(subject, remote_error, until);
  } else {
    settled = trouble_of(subject, result, until);
  }
  if (!settled) end(settled.error());
  return settled;
}

Result<void> NcclCommunicator::Impl::issue(const Subject& subject, const Enqueue& enqueue) {
  const auto began = Clock::now();
  const auto told = [&](Result<void> result) -> Result<void> {
    if (result) return result;
    return about(subject.operation, std::move(result).error(), began);
  };
  const auto timeout = communicator::timeout_or(subject.timeout, options_.timeout);
  if (!timeout) return told(timeout.error());
  const auto pass = gate().enter();
  if (!pass) return told(pass.error());
  const auto turn = this->turn(nccl::Turns::Taker::issuer, began + *timeout);
  if (!turn) return told(turn.error());
  if (grouping != nullptr && grouping != this) {
    return told(client::invalid_argument("inside of `grouped` of another communicator"));
  }
  const Device::Current current(device());
  const int result = enqueue(functions(), handle_);
  if (grouping == this && (result == success || result == in_progress)) return {};
  return told(see_done(subject, result, began + *timeout));
}

/// What befell NCCL's own threads since the last call. Whoever is in a call asks for it there.
std::optional<Error> NcclCommunicator::Impl::look() {
  Result<void> trouble;
  if (const auto pass = gate().enter(); pass && grouping == nullptr) {
    if (const auto turn = this->turn(nccl::Turns::Taker::onlooker, Clock::now())) {
      trouble = settle(Clock::now());
    }
  }
  if (trouble || trouble.error().code != ErrorCode::nccl) return gate().reason();
  if (trouble.error().actual == remote_error) {
    const auto cause = life().await_cause(Duration{0});
    const auto now = Clock::now().time_since_epoch().count();
    Clock::rep since = 0;
    if (remote_since_.compare_exchange_strong(since, now)) since = now;
    if (!cause && Clock::duration(now - since) < patience_for_cause) return gate().reason();
    if (cause) trouble = *cause;
  }
  end(trouble.error());
  return gate().reason();
}

Result<void> NcclCommunicator::Impl::grouped(const Subject& subject,
                                             const std::function<Result<void>()>& calls) {
  Result<void> called;
  auto issued = issue(subject, [&](const NcclFunctions&, NcclHandle) {
    OpenGroup group(functions(), this);
    if (group.result() != success) return group.result();
    called = calls();
    return group.end();
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
