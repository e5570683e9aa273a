#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "communicator/float16.h"
#include "communicator/float8.h"
#include "muster/communicator.h"

// Elements of every type in host memory.

namespace muster::test {

/// Small numbers, which all types hold without rounding.
template <class Number>
inline void put(void* to, double value) {
  const auto number = static_cast<Number>(value);
  std::memcpy(to, &number, sizeof number);
}
template <class Number>
inline double get(const void* from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return static_cast<double>(number);
}

inline void put(void* to, DataType type, double value) {
  switch (type) {
    case DataType::int8: return put<std::int8_t>(to, value);
    case DataType::uint8: return put<std::uint8_t>(to, value);
    case DataType::int32: return put<std::int32_t>(to, value);
    case DataType::uint32: return put<std::uint32_t>(to, value);
    case DataType::int64: return put<std::int64_t>(to, value);
    case DataType::uint64: return put<std::uint64_t>(to, value);
    case DataType::float32: return put<float>(to, value);
    case DataType::float64: return put<double>(to, value);
    case DataType::float16:
      return put<std::uint16_t>(to, communicator::to_float16(static_cast<float>(value)));
    case DataType::bfloat16:
      return put<std::uint16_t>(to, communicator::to_bfloat16(static_cast<float>(value)));
    case DataType::float8_e4m3:
      return put<std::uint8_t>(to, communicator::to_float8_e4m3(static_cast<float>(value)));
    case DataType::float8_e5m2:
      return put<std::uint8_t>(to, communicator::to_float8_e5m2(static_cast<float>(value)));
  }
}

inline double get(const void* from, DataType type) {
  const auto bits = [from] { return static_cast<std::uint16_t>(get<std::uint16_t>(from)); };
  const auto byte = [from] { return static_cast<std::uint8_t>(get<std::uint8_t>(from)); };
  switch (type) {
    case DataType::int8: return get<std::int8_t>(from);
    case DataType::uint8: return get<std::uint8_t>(from);
    case DataType::int32: return get<std::int32_t>(from);
    case DataType::uint32: return get<std::uint32_t>(from);
    case DataType::int64: return get<std::int64_t>(from);
    case DataType::uint64: return get<std::uint64_t>(from);
    case DataType::float32: return get<float>(from);
    case DataType::float64: return get<double>(from);
    case DataType::float16: return communicator::of_float16(bits());
    case DataType::bfloat16: return communicator::of_bfloat16(bits());
    case DataType::float8_e4m3: return communicator::of_float8_e4m3(byte());
    case DataType::float8_e5m2: return communicator::of_float8_e5m2(byte());
  }
  return 0;
}

/// Elements of one type in host memory.
class Elements {
 public:
  Elements(DataType type, const std::vector<double>& values)
      : type_(type), bytes_(values.size() * size_of(type)) {
    for (std::size_t index = 0; index < values.size(); ++index) {
      put(bytes_.data() + index * size_of(type), type, values[index]);
    }
  }
  Elements(DataType type, std::size_t size) : Elements(type, std::vector<double>(size)) {}

  void* at(std::size_t index = 0) { return bytes_.data() + index * size_of(type_); }
  std::vector<double> values() {
    std::vector<double> values;
    for (std::size_t index = 0; index * size_of(type_) < bytes_.size(); ++index) {
      values.push_back(get(at(index), type_));
    }
    return values;
  }

 private:
  DataType type_;
  std::vector<char> bytes_;
};

inline constexpr DataType float_types[] = {DataType::float16,     DataType::bfloat16,
                                           DataType::float32,     DataType::float64,
                                           DataType::float8_e4m3, DataType::float8_e5m2};
inline constexpr DataType integer_types[] = {DataType::int8,   DataType::uint8, DataType::int32,
                                             DataType::uint32, DataType::int64, DataType::uint64};

/// Scaled sums of at most four ranks, which all floating-point types hold without rounding.
inline constexpr double factors[] = {0.5, 1, -2, -1};
inline double factor_of(int rank) { return factors[rank]; }

/// What a rank has, before it is scaled: 1 or 2.
inline double scaled_value(int rank, std::size_t index) {
  return static_cast<double>((static_cast<std::size_t>(rank) + index) % 2 + 1);
}
inline std::vector<double> scaled_part(int rank, std::size_t count, std::size_t first = 0) {
  std::vector<double> values;
  for (std::size_t index = first; index < first + count; ++index) {
    values.push_back(scaled_value(rank, index));
  }
  return values;
}
/// The scaled sums of all ranks.
inline std::vector<double> scaled_sums(int world_size, std::size_t count, std::size_t first = 0) {
  std::vector<double> sums(count);
  for (int rank = 0; rank < world_size; ++rank) {
    const auto own = scaled_part(rank, count, first);
    for (std::size_t index = 0; index < count; ++index) {
      sums[index] += factor_of(rank) * own[index];
    }
  }
  return sums;
}

}  // namespace muster::test
