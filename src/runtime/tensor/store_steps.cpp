#include "runtime/tensor/store_steps.h"

#include <algorithm>
#include <utility>

#include "muster/codec.h"

namespace muster::runtime {

std::size_t StoreSteps::part_bytes_max() const {
  const Limits limits = group_.store().limits();
  const std::uint64_t share =
      limits.round_bytes_max / static_cast<std::uint64_t>(group_.world_size());
  // A part is copied a few times on its way; larger ones would take memory and no less time.
  constexpr std::uint64_t enough = std::uint64_t{4} << 20;
  return static_cast<std::size_t>(std::min({std::uint64_t{limits.value_bytes_max}, share, enough}));
}

char* StoreSteps::own_part(std::size_t bytes) {
  own_.resize(bytes);
  return own_.data();
}

Result<void> StoreSteps::exchange(std::size_t bytes, Clock::time_point deadline) {
  own_.resize(bytes);
  if (group_.world_size() == 1) {
    parts_.assign(1, std::exchange(own_, {}));
    return {};
  }
  const auto left = std::chrono::duration_cast<Duration>(deadline - Clock::now());
  auto all = group_.all_gather_bytes(own_, codec_id::tensor, std::max(Duration(1), left));
  if (!all) return std::move(all).error();
  parts_ = *std::move(all);
  return {};
}

std::string_view StoreSteps::part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }

}  // namespace muster::runtime
