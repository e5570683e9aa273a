#include "runtime/tensor/gloo_steps.h"

#include <algorithm>
#include <chrono>

namespace muster::runtime {

Result<void> GlooSteps::exchange(std::size_t bytes, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<Duration>(deadline - Clock::now());
  bytes_ = bytes;
  return communicator_.all_gather(own_.data(), parts_.data(), bytes, DataType::uint8, nullptr,
                                  std::max(Duration(1), left));
}

std::string_view GlooSteps::part(int rank) const {
  return {parts_.data() + static_cast<std::size_t>(rank) * bytes_, bytes_};
}

}  // namespace muster::runtime
