#pragma once

#include <cstdint>
#include <string>
#include <vector>

// What the trainer of the demo tells of a new version of its weights. The weights themselves would
// travel over NCCL; here they are simulated by what is known of them.

namespace demo {

inline constexpr int tensor_count = 64;

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t checksum = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, dtype, shape, checksum);
  }
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

struct Manifest {
  std::uint64_t version = 0;
  std::vector<Tensor> tensors;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(version, tensors);
  }
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// The manifest of a version; every process can tell whether it got the right one.
inline Manifest manifest_of(std::uint64_t version) {
  Manifest manifest{version, {}};
  for (int index = 0; index < tensor_count; ++index) {
    const auto number = static_cast<std::uint64_t>(index);
    manifest.tensors.push_back({"layers." + std::to_string(index) + ".weight",
                                "bf16",
                                {4096, 128 * (1 + number % 8)},
                                (version + 1) * 0x9e3779b97f4a7c15 ^ number});
  }
  return manifest;
}

}  // namespace demo
