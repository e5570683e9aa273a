#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/forked.h"
#include "communicator/communicator_impl.h"
#include "communicator/lifecycle.h"

namespace muster::communicator {

/// The part of a communicator that is the same for all kinds.
///
/// Each library that makes communicators has a copy of its own, which it does not export.
class CommonImpl : public Communicator::Impl, public std::enable_shared_from_this<CommonImpl> {
 public:
  const Membership& membership() const final { return membership_; }
  CreationTimes creation_times() const final { return lifecycle_->creation_times(); }
  Duration timeout() const final { return timeout_; }
  std::optional<Error> refusal(std::string_view operation) const final;
  Error about(std::string_view operation, Error error, TimePoint began) const final;
  /// Watches `group` instead of the group before, if its ranks are the same processes.
  Result<void> attach(StatelessProcessGroup& group, Duration timeout) final;
  void abort_all(const std::vector<std::shared_ptr<Impl>>& communicators) override;
  void release() final;

  Gate& gate() const { return *lifecycle_->gate(); }
  /// From now on a loss ends it, or its host is notified.
  void watch(StatelessProcessGroup& group);
  /// See Lifecycle.
  std::optional<Error> commit(CreationTimes times) { return lifecycle_->commit(times); }
  /// Ends it now. The first reason counts.
  virtual void end(Error why) = 0;

 protected:
  /// codec  of the rounds in which ranks make and attach this kind
  CommonImpl(Membership membership, const CommunicatorOptions& options, std::uint32_t codec);

  Lifecycle& lifecycle() const { return *lifecycle_; }
  /// Closes the gate. See Lifecycle.
  bool close_gate(Error why);

 private:
  /// In a forked child, once: closes the child's copies of sockets. Takes no lock, because the
  /// thread that held it when the process forked does not exist here.
  virtual void close_inherited() {}

  const base::Owner owner_;
  const Membership membership_;
  const Duration timeout_;
  const std::uint32_t codec_;
  const std::shared_ptr<Lifecycle> lifecycle_;
};

}  // namespace muster::communicator
