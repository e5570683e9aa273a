#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "communicator/life.h"
#include "muster/nccl_communicator.h"
#include "nccl/device.h"
#include "nccl/reaper.h"
#include "nccl/turns.h"

namespace muster::nccl {

/// What communicators of one NcclCommunicators share; one that was made alone has its own.
struct Shared {
  std::shared_ptr<Reaper> reaper = std::make_shared<Reaper>();
  Turns turns;
};

/// What `create` has found out before NCCL is entered.
struct Ground {
  NcclFunctions nccl;
  std::shared_ptr<const Device> device;
  int version = 0;
};

}  // namespace muster::nccl

MUSTER_BEGIN_NAMESPACE

/// Life cycle: made by nccl::Formation when all ranks have it -> called -> over: its gate is closed
/// for one reason, and the reaper has the handle.
class NcclCommunicator::Impl : public communicator::HasLife<NcclCommunicator::Impl> {
 public:
  Impl(nccl::Ground ground, NcclOptions options, communicator::Place place,
       std::shared_ptr<nccl::Shared> shared);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const NcclFunctions& functions() const { return ground_.nccl; }
  const nccl::Device& device() const { return *ground_.device; }
  const NcclOptions& options() const { return options_; }
  NcclHandle handle() const { return handle_; }

  /// Enters NCCL, on a thread of its own: there a call that does not return, or leaves the thread
  /// inside of an NCCL group, harms nobody. What comes of it is for `settle`.
  ///
  /// errors  nccl (also of a call that did not return in time), or why the gate is closed
  Result<void> begin(const NcclUniqueId& id, std::chrono::steady_clock::time_point until);
  /// Looks until NCCL is not in progress any more, the gate is closed, or the time has come.
  ///
  /// errors  nccl, timed_out, or why the gate is closed
  /// `meanwhile` is called between the looks; its error ends this.
  Result<void> settle(std::chrono::steady_clock::time_point until,
                      const std::function<Result<void>()>& meanwhile = {}) const;

  /// The first reason counts.
  void end(Error why);
  /// The same, with the abort left to the caller: what is to be aborted, if this was the first.
  std::vector<nccl::Doomed> doom(Error why, bool& was_first);
  void tell_host() const { life().tell_host(); }
  void reap(std::vector<nccl::Doomed> doomed) const { shared_->reaper->submit(std::move(doomed)); }

  /// One call of an operation: what it is about, for its errors.
  struct Subject {
    std::string_view operation;
    const char* function = "";  ///< NCCL's
    Duration timeout{0};
  };
  using Enqueue = std::function<int(const NcclFunctions& nccl, NcclHandle handle)>;

  /// The calling thread's, of calls on the device.
  Result<nccl::Turns::Turn> turn(nccl::Turns::Taker taker,
                                 std::chrono::steady_clock::time_point until) const {
    return shared_->turns.take(device().ordinal(), taker, until, gate());
  }
  /// Puts what `enqueue` issues on its stream.
  Result<void> issue(const Subject& subject, const Enqueue& enqueue);
  /// Runs `calls` inside of one NCCL group.
  Result<void> grouped(const Subject& subject, const std::function<Result<void>()>& calls);
  Result<void> with_native(const Subject& subject,
                           const std::function<Result<void>(NcclHandle handle)>& work);
  Result<void> close(Duration timeout);
  /// Asks NCCL between the calls, and ends it for what NCCL says.
  ///
  /// returns  why it is over, if it is
  std::optional<Error> look();

 private:
  using Clock = std::chrono::steady_clock;

  Result<void> destroy(Clock::time_point until);
  Error trouble_of(const Subject& subject, int result, Clock::time_point until);
  Result<void> see_done(const Subject& subject, int result, Clock::time_point until);

  const nccl::Ground ground_;
  const NcclOptions options_;
  const std::shared_ptr<nccl::Shared> shared_;
  std::atomic<NcclHandle> handle_{nullptr};
  std::atomic<Clock::rep> remote_since_{0};  ///< when NCCL first said that a peer is gone
  std::atomic<bool> is_claimed_{false};      ///< the handle, by who ends it
};

MUSTER_END_NAMESPACE
