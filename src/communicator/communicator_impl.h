#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "communicator/errors.h"
#include "communicator/membership.h"
#include "communicator/operation_call.h"
#include "muster/communicator.h"

MUSTER_BEGIN_NAMESPACE

/// The communicator behind a handle. The handle is in the library muster; muster-nccl and
/// muster-gloo each derive their own from this. So the order of the virtual functions,
/// OperationCall and Membership are part of the ABI between these libraries.
///
/// `refusal` is asked before any other call. In a forked child only `release` is called then.
class MUSTER_API Communicator::Impl {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Impl() = default;
  virtual ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  virtual std::string_view kind() const = 0;
  virtual const communicator::Membership& membership() const = 0;
  virtual CreationTimes creation_times() const = 0;
  /// The timeout of calls that were given none.
  virtual Duration timeout() const = 0;

  /// `forked`, if this process is a child of the one that made the communicator.
  virtual std::optional<Error> refusal(std::string_view operation) const = 0;
  /// Adds to an error what every error of a call contains.
  virtual Error about(std::string_view operation, Error error, TimePoint began) const = 0;

  /// Why it ended, if it has.
  virtual std::optional<Error> error() = 0;
  /// call  its arguments were checked, and its timeout is resolved
  virtual Result<void> perform(const communicator::OperationCall& call) = 0;
  /// An operation was refused for this, and is not performed.
  virtual void refused(const Error&) {}
  /// calls  not empty
  virtual Result<void> grouped(const std::function<Result<void>()>& calls, Duration timeout) = 0;
  virtual Result<void> attach(StatelessProcessGroup& group, Duration timeout) = 0;
  /// communicators  at least one, all of this kind
  virtual void abort_all(const std::vector<std::shared_ptr<Impl>>& communicators) = 0;
  virtual Result<void> close(Duration timeout) = 0;
  /// The handle is destroyed. In a forked child it only lets go what the child has of its own, and
  /// the object is never destroyed.
  virtual void release() = 0;
};

MUSTER_END_NAMESPACE

namespace muster::communicator {

/// Why every call on it is refused, if it is: moved from, or inherited by a forked child.
inline std::optional<Error> refusal_of(const std::shared_ptr<Communicator::Impl>& impl,
                                       std::string_view operation) {
  return impl ? impl->refusal(operation) : moved_from(operation);
}

}  // namespace muster::communicator
