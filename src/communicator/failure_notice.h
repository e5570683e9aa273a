#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "muster/process_group.h"

namespace muster::communicator {

/// Tells the ranks that still wait inside NCCL or Gloo that another rank has failed there, by a key
/// in the store. NCCL and Gloo do not tell them. Nothing is asked in the first second.
///
/// threads  one
class FailureNotice {
 public:
  explicit FailureNotice(StatelessProcessGroup& group);

  /// The failure that another rank has posted, if any. Does not block; the caller polls. Nothing is
  /// aborted before the vote: a rank that still waits would see the abort and look at fault.
  std::optional<Error> poll();
  /// Does not wait. The key is removed when `lifetime` has passed.
  void post(const Error& error, Duration lifetime);

 private:
  struct Shared;

  StatelessProcessGroup& group_;
  const std::string key_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  const std::shared_ptr<Shared> shared_;
};

}  // namespace muster::communicator
