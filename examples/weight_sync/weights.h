#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// The weights of one tensor-parallel slice: some tensors, one after the other in memory, and what
// is told of them before they come.

namespace weight_sync {

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t offset = 0;  ///< in the slice, in bytes
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, dtype, shape, offset, bytes, checksum);
  }
};

/// What the leader of a slice tells all its processes next.
struct Order {
  enum class Kind : std::uint8_t { version, regroup, end };

  Kind kind = Kind::end;
  std::uint64_t version = 0;  ///< its weights follow
  std::vector<Tensor> tensors;
  std::uint64_t bytes = 0;         ///< of all of them
  std::uint64_t bucket_bytes = 0;  ///< that travel at once

  template <class Archive>
  void serialize(Archive& archive) {
    archive(kind, version, tensors, bytes, bucket_bytes);
  }
};

using Weights = std::vector<char>;

inline std::uint64_t mix(std::uint64_t number) {
  number = (number ^ number >> 32) * 0x9e3779b97f4a7c15;
  return number ^ number >> 29;
}

inline std::uint64_t checksum_of(const char* bytes, std::size_t count) {
  std::uint64_t sum = count;
  for (std::size_t at = 0; at < count; at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof word, count - at));
    sum = mix(sum ^ word);
  }
  return sum;
}

/// As if they came out of a training step: every version has other numbers.
inline Weights weights_of(std::uint64_t version, int slice, std::size_t bytes) {
  Weights weights(bytes);
  std::uint64_t word = mix(version) ^ mix(static_cast<std::uint64_t>(slice) + 1000);
  for (std::size_t at = 0; at < bytes; at += sizeof word) {
    word = mix(word + at);
    std::memcpy(weights.data() + at, &word, std::min(sizeof word, bytes - at));
  }
  return weights;
}

inline constexpr std::uint64_t tensor_count = 12;

inline Order order_of(std::uint64_t version, const Weights& weights, std::uint64_t bucket_bytes) {
  Order order;
  order.kind = Order::Kind::version;
  order.version = version;
  order.bytes = weights.size();
  order.bucket_bytes = bucket_bytes;
  const std::uint64_t most = weights.size() / tensor_count / 4 * 4;
  for (std::uint64_t index = 0; index < tensor_count; ++index) {
    Tensor tensor;
    tensor.name = "layers." + std::to_string(index) + ".weight";
    tensor.dtype = "float32";
    tensor.offset = index * most;
    tensor.bytes = index + 1 == tensor_count ? weights.size() - tensor.offset : most;
    tensor.shape = {tensor.bytes / 4};
    tensor.checksum = checksum_of(weights.data() + tensor.offset, tensor.bytes);
    order.tensors.push_back(std::move(tensor));
  }
  return order;
}

/// The first tensor that is not what its checksum says; null: all are right.
inline const Tensor* first_wrong(const Order& order, const Weights& weights) {
  for (const Tensor& tensor : order.tensors) {
    const bool fits =
        tensor.offset <= weights.size() && tensor.bytes <= weights.size() - tensor.offset;
    if (!fits || checksum_of(weights.data() + tensor.offset, tensor.bytes) != tensor.checksum) {
      return &tensor;
    }
  }
  return nullptr;
}

}  // namespace weight_sync
