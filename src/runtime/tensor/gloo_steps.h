#pragma once

#include <vector>

#include "muster/communicator.h"
#include "runtime/tensor/steps.h"

namespace muster::runtime {

/// Steps through a communicator for host memory. All ranks give as many bytes in a step.
class GlooSteps : public Steps {
 public:
  explicit GlooSteps(Communicator& communicator)
      : communicator_(communicator),
        own_(bytes_max),
        parts_(bytes_max * static_cast<std::size_t>(communicator.world_size())) {}

  std::size_t part_bytes_max() const override { return bytes_max; }
  bool is_shared() const override { return false; }
  char* own_part(std::size_t) override { return own_.data(); }
  Result<void> exchange(std::size_t bytes, Clock::time_point deadline) override;
  std::string_view part(int rank) const override;

 private:
  static constexpr std::size_t bytes_max = std::size_t{1} << 20;

  Communicator& communicator_;
  std::vector<char> own_;
  std::vector<char> parts_;
  std::size_t bytes_ = 0;
};

}  // namespace muster::runtime
