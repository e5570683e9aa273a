#include "runtime/tensor/state.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/failure.h"
#include "runtime/tensor/copy.h"

namespace muster::runtime {

Result<SharedSteps*> TensorState::shared(StatelessProcessGroup& group,
                                         const std::vector<JobPlace>& places,
                                         Steps::Clock::time_point deadline) {
  if (owner_.is_forked())
    return base::failure(ErrorCode::forked, "this process is a child of the one in the group");
  if (shared_ && !shared_->is_over()) return shared_.get();
  if (auto error = shared_ ? shared_->end_to_come() : std::nullopt) {
    shared_.reset();
    return *std::move(error);
  }
  if (!shared_ && !why_not_.empty()) return nullptr;
  shared_.reset();
  const bool are_on_one_node = std::all_of(places.begin(), places.end(), [&](const auto& place) {
    return place.node_rank == places.front().node_rank;
  });
  if (places.size() < 2 || !are_on_one_node) {
    why_not_ = places.size() < 2 ? "the group has one rank" : "its ranks are on several nodes";
    return nullptr;
  }
  auto made = SharedSteps::make(group, deadline);
  if (!made) return std::move(made).error();
  shared_ = std::move(made->steps);
  why_not_ = std::move(made->why_not);
  return shared_.get();
}

void TensorState::keep(NewFile sent) {
  const auto has_come = [](const NewFile& file) {
    struct stat found {};
    return ::fstat(file.descriptor(), &found) != 0 || found.st_nlink == 0;
  };
  sent_.erase(std::remove_if(sent_.begin(), sent_.end(), has_come), sent_.end());
  sent_.push_back(std::move(sent));
}

Result<void> append_packed(NewFile& file, const TensorView& tensor) {
  if (tensor.is_contiguous()) return file.append(first_element(tensor), tensor.byte_count());
  const std::uint64_t all = tensor.element_count();
  const std::uint64_t element_bytes = tensor.dtype.byte_count();
  const std::uint64_t chunk = std::max<std::uint64_t>(1, (std::uint64_t{1} << 20) / element_bytes);
  std::vector<char> packed(std::min(chunk, all) * element_bytes);
  for (std::uint64_t first = 0; first < all; first += chunk) {
    const std::uint64_t count = std::min(chunk, all - first);
    pack(packed.data(), tensor, first, count);
    if (auto done = file.append(packed.data(), count * element_bytes); !done) return done;
  }
  return {};
}

}  // namespace muster::runtime
