#pragma once

#include <string>
#include <vector>

#include "muster/process_group.h"
#include "runtime/tensor/steps.h"

namespace muster::runtime {

/// Steps through the server: each is a gathering of objects on all ranks. Of a group of one rank
/// they stay inside the process.
class StoreSteps : public Steps {
 public:
  explicit StoreSteps(StatelessProcessGroup& group) : group_(group) {}

  /// As much as the server takes of each rank in one round.
  std::size_t part_bytes_max() const override;
  bool is_shared() const override { return false; }
  char* own_part(std::size_t bytes) override;
  Result<void> exchange(std::size_t bytes, Clock::time_point deadline) override;
  std::string_view part(int rank) const override;

 private:
  StatelessProcessGroup& group_;
  std::string own_;
  std::vector<std::string> parts_;
};

}  // namespace muster::runtime
