#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "muster/process_group.h"

namespace muster::communicator {

/// Lets the ranks that still wait for NCCL or Gloo know that another one has failed there: those
/// tell them nothing. A making that takes less than a second asks for nothing.
///
/// threads  one
class Alarm {
 public:
  explicit Alarm(StatelessProcessGroup& group);

  /// What another rank has raised; to be asked again and again while it takes long. Nobody is
  /// aborted for it before the vote: those who wait still would see that, and look at fault.
  std::optional<Error> listen();
  /// Without waiting. It is forgotten when `lifetime` has passed.
  void raise(const Error& error, Duration lifetime);

 private:
  struct Shared;

  StatelessProcessGroup& group_;
  const std::string key_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  const std::shared_ptr<Shared> shared_;
};

}  // namespace muster::communicator
