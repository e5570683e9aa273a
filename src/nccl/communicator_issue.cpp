#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "client/failure.h"
#include "nccl/communicator_impl.h"
#include "nccl/functions.h"

// How an operation gets on its stream: enter the gate -> lock the device -> call NCCL -> wait until
// NCCL is no longer in progress -> leave the gate. A failure inside NCCL ends the communicator, and
// so does a call that NCCL refuses, unless it blocks: NCCL keeps the refusal as its error, for
// good.

namespace muster::nccl_internal {

using communicator::OperationCall;

namespace {

/// How long the store has to report which rank is gone.
constexpr Duration cause_timeout{std::chrono::seconds(5)};

bool is_refused(const Error& error) {
  return error.code == ErrorCode::nccl &&
         (error.actual == invalid_argument || error.actual == invalid_usage);
}

/// Why this library cannot do what the call wants; nothing: it can.
std::optional<Error> lack_of(const OperationCall& call, const Prepared& library) {
  const bool is_float8 = call.type == DataType::float8_e4m3 || call.type == DataType::float8_e5m2;
  if (is_float8 && library.version < version_of_float8) {
    return client::invalid_argument("type: NCCL " + version_text(library.version) +
                                    " has no float8, 2.24 is the first that does");
  }
  const nccl::Functions& nccl = library.nccl;
  const bool has_scaled =
      nccl.red_op_create_pre_mul_sum != nullptr && nccl.red_op_destroy != nullptr;
  if (call.reduction.factor() && !has_scaled) {
    return client::invalid_argument(
        "reduction: scaled_sum needs ncclRedOpCreatePreMulSum and ncclRedOpDestroy, which the "
        "functions of NCCL lack; add them to nccl::Functions");
  }
  return std::nullopt;
}

Error host_threw() {
  return client::failure(ErrorCode::aborted, "the host's function threw an exception");
}

}  // namespace

/// An NCCL group on this thread, for one communicator. Either all calls in it are issued, or none
/// is.
class Impl::OpenGroup {
 public:
  OpenGroup(const nccl::Functions& nccl, const Impl& owner)
      : nccl_(nccl), owner_(owner), outer_(open_group_), result_(nccl.group_start()) {
    if (result_ == success) open_group_ = this;
  }
  ~OpenGroup() {
    open_group_ = outer_;
    if (outer_ != nullptr && has_calls_) outer_->take();
  }
  OpenGroup(const OpenGroup&) = delete;
  OpenGroup& operator=(const OpenGroup&) = delete;

  int result() const { return result_; }
  bool is_of(const Impl& impl) const { return &owner_ == &impl; }
  OpenGroup* outer() const { return outer_; }

  /// A call in it has failed; the first reason counts.
  void fail(const Error& why) {
    if (!failure_) failure_ = why;
  }
  const std::optional<Error>& failure() const { return failure_; }
  /// NCCL has taken a call.
  void take() { has_calls_ = true; }
  bool has_calls() const { return has_calls_; }

  int end() const {
    const Inside mark(outer_ == nullptr ? owner_.inside() : nullptr);
    return nccl_.group_end();
  }
  /// NCCL has no function for this, but drops a group in which it has refused a call.
  void drop() const {
    nccl_.all_reduce(nullptr, nullptr, 0, 0, 0, nullptr, nullptr);
    nccl_.group_end();
  }

 private:
  const nccl::Functions& nccl_;
  const Impl& owner_;
  OpenGroup* const outer_;
  const int result_;
  std::optional<Error> failure_;
  bool has_calls_ = false;
};

thread_local Impl::OpenGroup* Impl::open_group_ = nullptr;

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
  Result<void> settled;
  if (result == in_progress) {
    settled = settle(until);
    const bool is_remote = !settled && settled.error().code == ErrorCode::nccl &&
                           settled.error().actual == remote_error;
    if (is_remote) settled = failure_of(names, remote_error, until);
  } else {
    settled = failure_of(names, result, until);
  }
  if (settled) return settled;
  if (is_refused(settled.error())) {
    if (is_blocking()) return settled;
    Error refused = settled.error();
    refused.detail += "; NCCL keeps a refusal for good, so the communicator has ended";
    settled = std::move(refused);
  }
  end(settled.error());
  return settled;
}

Result<void> Impl::issue(std::string_view operation, Duration timeout, const Enqueue& enqueue) {
  const auto began = Clock::now();
  const auto told = [&](Result<void> result) -> Result<void> {
    if (result) return result;
    Error error = about(operation, std::move(result).error(), began);
    if (open_group_ != nullptr) open_group_->fail(error);
    return error;
  };
  const auto pass = gate().enter();
  if (!pass) return told(pass.error());
  const auto lock = lock_device(DeviceLocks::Role::issuer, began + timeout);
  if (!lock) return told(lock.error());
  if (open_group_ != nullptr && !open_group_->is_of(*this)) {
    return told(client::invalid_argument("inside `grouped` of another communicator"));
  }
  const Device::Current current(device());
  std::optional<Watchdog::Watch> watch;
  if (is_blocking() && open_group_ == nullptr) {
    watch.emplace(shared_->watchdog, self(), began + timeout);
  }
  const auto [result, function] = enqueue();
  if (open_group_ != nullptr && (result == success || result == in_progress)) return {};
  return told(see_done({operation, function}, result, began + timeout));
}

void Impl::refused(const Error& why) {
  if (open_group_ != nullptr) open_group_->fail(why);
}

std::optional<Error> Impl::error() {
  Result<void> settled;
  if (const auto pass = gate().enter(); pass && open_group_ == nullptr) {
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
    const bool may_come = !cause && lifecycle().hears_losses();
    if (may_come && Clock::duration(now - since) < cause_timeout) return gate().reason();
    if (cause) settled = *cause;
  }
  end(settled.error());
  return gate().reason();
}

Result<void> Impl::perform(const communicator::OperationCall& call) {
  if (auto lack = lack_of(call, prepared_)) {
    const Error error = about(call.name, *std::move(lack), Clock::now());
    refused(error);
    return error;
  }
  return issue(call.name, call.timeout, [&] {
    const Enqueued enqueued =
        enqueue(call, functions(), handle_, membership().rank, membership().world_size,
                open_group_ == nullptr ? inside() : nullptr);
    const bool is_taken = enqueued.result == success || enqueued.result == in_progress;
    if (open_group_ != nullptr && is_taken) open_group_->take();
    return enqueued;
  });
}

/// NCCL keeps the refusal by which it drops a group for the error of a communicator that does not
/// block, if it has taken a call of it.
void Impl::drop(const OpenGroup& group, const Error& why) {
  group.drop();
  if (group.outer() != nullptr) return group.outer()->fail(why);
  if (is_blocking() || !group.has_calls()) return;
  end(client::failure(ErrorCode::aborted,
                      "a call inside `grouped` failed, so nothing of it was "
                      "issued, and NCCL keeps that for good: " +
                          why.detail));
}

Result<void> Impl::grouped(const std::function<Result<void>()>& calls, Duration timeout) {
  Result<void> called;
  auto issued = issue("grouped", timeout, [&]() -> Enqueued {
    OpenGroup group(functions(), *this);
    if (group.result() != success) return {group.result(), "ncclGroupStart"};
    try {
      called = calls();
    } catch (...) {
      drop(group, host_threw());
      throw;
    }
    if (group.failure()) called = *group.failure();
    if (called) return {group.end(), "ncclGroupEnd"};
    drop(group, called.error());
    return {};
  });
  return called ? issued : called;
}

Result<void> Impl::with_native(const std::function<Result<void>(nccl::Handle handle)>& work,
                               Duration timeout) {
  constexpr Names names{"with_native", "NCCL"};
  Result<void> worked;
  auto issued = issue(names.operation, timeout, [&]() -> Enqueued {
    try {
      worked = work(handle_);
    } catch (...) {
      if (open_group_ != nullptr) open_group_->fail(host_threw());
      if (open_group_ == nullptr) (void)see_done(names, in_progress, Clock::now() + timeout);
      throw;
    }
    if (open_group_ != nullptr) open_group_->take();  // whatever the host has called
    if (!worked && open_group_ != nullptr) open_group_->fail(worked.error());
    return {in_progress, names.function};  // waits for what `work` has left in progress
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
