#pragma once

#include <functional>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "muster/gloo.h"
#include "support/elements.h"
#include "support/ranks.h"

// Ranks that exercise what moves or reduces elements of every type.

namespace muster::test {

inline constexpr DataType all_types[] = {
    DataType::int8,    DataType::uint8,    DataType::int32,       DataType::uint32,
    DataType::int64,   DataType::uint64,   DataType::float16,     DataType::float32,
    DataType::float64, DataType::bfloat16, DataType::float8_e4m3,  // e5m2: the sums are too long
                                                                   // for it
};
inline constexpr ReduceOp all_operations[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::max,
                                              ReduceOp::min, ReduceOp::average};
inline constexpr std::size_t count = 7;

/// What rank `rank` has at `index`: 1, 2 or 3, so that a product of four fits everywhere.
inline double value(int rank, std::size_t index) {
  return static_cast<double>((static_cast<std::size_t>(rank) + index) % 3 + 1);
}

inline std::vector<double> part(int rank, std::size_t first = 0) {
  std::vector<double> values;
  for (std::size_t index = first; index < first + count; ++index) {
    values.push_back(value(rank, index));
  }
  return values;
}

inline std::vector<double> joined(int world_size,
                                  const std::function<std::vector<double>(int)>& of) {
  std::vector<double> all;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto values = of(rank);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

using Exercise = std::function<void(Communicator& communicator, DataType type)>;

/// Runs it on all ranks, on each of the types.
inline void exercise(int world_size, const Exercise& each,
                     std::span<const DataType> types = all_types) {
  auto server = start_server();
  run_ranks(world_size, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, world_size);
    gloo::Options options;
    options.timeout = 20s;
    auto communicator = must(gloo::create(group, options));
    for (const DataType type : types) {
      CAPTURE(static_cast<int>(type));
      each(communicator, type);
    }
    must(communicator.close());
  });
}

inline constexpr int world_sizes[] = {1, 2, 3, 4};

}  // namespace muster::test
