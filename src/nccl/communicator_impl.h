#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "communicator/common_impl.h"
#include "muster/nccl.h"
#include "nccl/aborter.h"
#include "nccl/device.h"
#include "nccl/device_locks.h"
#include "nccl/enqueue.h"
#include "nccl/inside.h"
#include "nccl/watchdog.h"

namespace muster::nccl_internal {

inline constexpr std::string_view kind = "nccl";

/// State that the communicators of one nccl::Communicators share. A communicator that was made by
/// nccl::create has its own.
struct Shared {
  std::shared_ptr<Aborter> aborter = std::make_shared<Aborter>();
  DeviceLocks locks;
  Watchdog watchdog;  ///< of those that block
};

/// The libraries and the device of a communicator, as preparing them has found them.
struct Prepared {
  nccl::Functions nccl;
  std::shared_ptr<const Device> device;
  int version = 0;
};

/// Life cycle: made by Creation when all ranks have it -> called -> ended: its gate is closed for
/// one reason, and the aborter has the handle.
class Impl final : public communicator::CommonImpl {
 public:
  using Clock = std::chrono::steady_clock;

  Impl(Prepared prepared, nccl::Options options, communicator::Membership membership,
       std::shared_ptr<Shared> shared);
  ~Impl() override;

  std::string_view kind() const override { return nccl_internal::kind; }
  /// Also asks NCCL for its state if no other thread is in a call, and ends it if NCCL has failed.
  std::optional<Error> error() override;
  Result<void> perform(const communicator::OperationCall& call) override;
  void refused(const Error& why) override;
  Result<void> grouped(const std::function<Result<void>()>& calls, Duration timeout) override;
  Result<void> with_native(const std::function<Result<void>(nccl::Handle handle)>& work,
                           Duration timeout);
  Result<nccl::Handle> native_handle() const;
  void abort_all(const std::vector<std::shared_ptr<Communicator::Impl>>& communicators) override;
  Result<void> close(Duration timeout) override;
  void end(Error why) override;

  const nccl::Functions& functions() const { return prepared_.nccl; }
  const Device& device() const { return *prepared_.device; }
  nccl::Handle handle() const { return handle_; }

  /// Calls ncclCommInitRankConfig on a thread of its own, because it may not return, or leave the
  /// thread inside an NCCL group. `settle` then waits for the outcome. In blocking mode it waits
  /// for the other ranks; when that takes too long, the end of the communicator aborts it.
  ///
  /// meanwhile  is called between two looks; its error ends the wait
  /// errors     nccl (also of a call that did not return in time), timed_out (in blocking mode),
  ///            those of `meanwhile`, or why the gate is closed
  Result<void> begin(const nccl::UniqueId& id, Clock::time_point until,
                     const std::function<Result<void>()>& meanwhile);
  /// Waits until NCCL is no longer in progress, the gate is closed, or the time has come.
  ///
  /// meanwhile  is called between two looks; its error ends the wait
  /// errors     nccl, timed_out, why the gate is closed, those of `meanwhile`
  Result<void> settle(Clock::time_point until,
                      const std::function<Result<void>()>& meanwhile = {}) const;
  bool is_blocking() const { return options_.mode == nccl::Mode::blocking; }
  /// For calls of functions that may block; null: they do not.
  InsideCount* inside() const { return is_blocking() ? inside_.get() : nullptr; }
  Result<void> release_issuer() { return shared_->locks.release_issuer(device().ordinal()); }
  /// Locks the device for the calling thread. See DeviceLocks.
  Result<DeviceLocks::Lock> lock_device(DeviceLocks::Role role, Clock::time_point until) const {
    return shared_->locks.acquire(device().ordinal(), role, until, gate());
  }

 private:
  /// The names of a call, for its errors.
  struct Names {
    std::string_view operation;
    const char* function = "";  ///< NCCL's
  };
  /// The next steps of the thread that ends a communicator.
  struct Ending {
    bool is_first = false;        ///< the host is notified
    std::vector<AbortJob> abort;  ///< the handle, unless another thread has taken it
  };
  using Enqueue = std::function<Enqueued()>;
  class OpenGroup;

  /// The NCCL group that is open on this thread; null: there is none.
  static thread_local OpenGroup* open_group_;

  std::shared_ptr<Impl> self() { return std::static_pointer_cast<Impl>(shared_from_this()); }
  /// Closes the gate, and takes the handle for the abort.
  Ending begin_end(Error why);
  /// Puts the operation that `enqueue` issues on its stream.
  Result<void> issue(std::string_view operation, Duration timeout, const Enqueue& enqueue);
  /// The job of ending a communicator's handle.
  AbortJob abort_of(nccl::Handle handle) const;
  Error failure_of(const Names& names, int result, Clock::time_point until);
  /// Instead of its end.
  void drop(const OpenGroup& group, const Error& why);
  Result<void> see_done(const Names& names, int result, Clock::time_point until);
  Result<int> call_finalize(Clock::time_point until);
  Result<void> finalize(Clock::time_point until);
  Result<void> destroy(Clock::time_point until);

  const Prepared prepared_;
  const nccl::Options options_;
  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<InsideCount> inside_ = std::make_shared<InsideCount>(0);
  std::atomic<nccl::Handle> handle_{nullptr};
  std::atomic<Clock::rep> remote_since_{0};   ///< when NCCL first reported that a peer is gone
  std::atomic<bool> is_handle_taken_{false};  ///< by the thread that destroys or aborts it
};

}  // namespace muster::nccl_internal
