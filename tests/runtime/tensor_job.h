#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#ifdef MUSTER_TESTS_GLOO
#include "muster/runtime_gloo.h"
#endif
#include "muster/tensor.h"
#include "runtime/job.h"

// Ranks that exchange tensors, and what these are made of.

namespace muster::test {

inline TensorOptions by(TensorWay way) {
  TensorOptions options;
  options.way = way;
  options.timeout = 20s;
  return options;
}

/// Runs `part` by the store with a plain group, by shared memory, and by Gloo where that is built.
inline void run_every_way(
    int world_size,
    const std::function<void(TensorRanks ranks, int rank, const TensorOptions& options)>& part) {
  Job job(world_size);
  job.run([&](Runtime& runtime) {
    part(*runtime.world().group(), runtime.rank(), by(TensorWay::automatic));
  });
  job.run([&](Runtime& runtime) {
    part(runtime.world(), runtime.rank(), by(TensorWay::shared_memory));
  });
#ifdef MUSTER_TESTS_GLOO
  RuntimeOptions options = patient();
  options.communicators = "gloo";
  options.makers = {gloo_maker()};
  const auto by_gloo = [&](Runtime& runtime) {
    part(runtime.world(), runtime.rank(), by(TensorWay::gloo));
    must(runtime.shutdown());  // one that only left would end the others' communicators
  };
  job.run(by_gloo, options);
#endif
}

/// Numbers that differ between ranks and elements, and whose sum depends on the order.
inline std::vector<float> uneven_numbers(int rank, std::size_t count) {
  std::vector<float> numbers;
  for (std::size_t index = 0; index < count; ++index) {
    numbers.push_back(1.0F / static_cast<float>(3 + rank) +
                      static_cast<float>(index % 1000) * (rank % 2 == 0 ? 1e-3F : 1e4F));
  }
  return numbers;
}

/// Numbers one after the other.
inline std::vector<std::int32_t> counted(std::size_t count, std::int32_t first) {
  std::vector<std::int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

template <class T>
std::vector<T> numbers_of(const TensorView& tensor) {
  REQUIRE(tensor.dtype == dtype::of<T>());
  REQUIRE(tensor.is_contiguous());
  std::vector<T> numbers(static_cast<std::size_t>(tensor.element_count()));
  if (!numbers.empty())
    std::memcpy(numbers.data(), static_cast<const char*>(tensor.data) + tensor.byte_offset,
                numbers.size() * sizeof(T));
  return numbers;
}

inline std::vector<int> ranks_of(const Error& error) {
  std::vector<int> ranks;
  for (const RankReport& report : error.ranks) ranks.push_back(report.rank);
  return ranks;
}

/// Files of ours in the memory that processes share, as this process has them open; those without a
/// name end with " (deleted)". Other tests may be at work there at the same time.
inline std::vector<std::string> open_shared_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
    if (file.rfind("/dev/shm/muster-", 0) == 0) files.push_back(file);
  }
  return files;
}

/// How many of them have a name.
inline std::size_t shared_file_count() {
  std::size_t count = 0;
  for (const std::string& file : open_shared_files())
    if (file.find(" (deleted)") == std::string::npos) ++count;
  return count;
}

}  // namespace muster::test
