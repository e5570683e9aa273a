#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/tensor/copy.h"

// Tensors with strides, to and from contiguous memory: compared with a walk over every index.

namespace muster::runtime {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Where each element is, in elements from the first one, in row-major order.
Numbers offsets_of(const Numbers& shape, const Numbers& strides) {
  Numbers offsets = {0};
  for (std::size_t index = 0; index < shape.size(); ++index) {
    Numbers next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t at = 0; at < shape[index]; ++at) {
        next.push_back(offset + at * strides[index]);
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

/// Memory of bytes that differ, with a tensor whose first element is in its middle.
struct Sample {
  Sample(Dtype dtype, Numbers shape, Numbers strides)
      : offsets(offsets_of(shape, strides)), memory(64 * 1024) {
    for (std::size_t index = 0; index < memory.size(); ++index) {
      memory[index] = static_cast<unsigned char>(index * 37 + index / 256);
    }
    view.data = memory.data() + 1;  // at no boundary
    view.byte_offset = memory.size() / 2;
    view.dtype = dtype;
    view.shape = std::move(shape);
    view.strides = std::move(strides);
    REQUIRE(validate(view));
  }

  const unsigned char* at(std::uint64_t element) const {
    return memory.data() + 1 + view.byte_offset + offsets[element] * view.dtype.byte_count();
  }

  Numbers offsets;
  std::vector<unsigned char> memory;
  TensorView view;
};

void check_part(Sample& sample, std::uint64_t first, std::uint64_t count) {
  CAPTURE(first);
  CAPTURE(count);
  const std::size_t bytes = sample.view.dtype.byte_count();
  std::vector<unsigned char> packed(count * bytes + 1, 0xee);
  pack(packed.data(), sample.view, first, count);
  bool is_same = packed.back() == 0xee;
  for (std::uint64_t index = 0; index < count; ++index) {
    is_same =
        is_same && std::memcmp(packed.data() + index * bytes, sample.at(first + index), bytes) == 0;
  }
  CHECK(is_same);

  // Back again, changed: these elements have it, and no other byte does.
  for (unsigned char& byte : packed) byte = static_cast<unsigned char>(~byte);
  std::vector<unsigned char> expected = sample.memory;
  for (std::uint64_t index = 0; index < count; ++index) {
    const auto place = static_cast<std::size_t>(sample.at(first + index) - sample.memory.data());
    std::memcpy(expected.data() + place, packed.data() + index * bytes, bytes);
  }
  unpack(sample.view, packed.data(), first, count);
  CHECK(sample.memory == expected);
}

void check_all_parts(Dtype dtype, const Numbers& shape, const Numbers& strides) {
  CAPTURE(to_string(dtype));
  Sample sample(dtype, shape, strides);
  const std::uint64_t all = sample.offsets.size();
  for (const std::uint64_t first : {std::uint64_t{0}, all / 3, all / 2, all}) {
    for (const std::uint64_t count : {all - first, (all - first) / 2, std::uint64_t{1}}) {
      if (count <= all - first) check_part(sample, first, count);
    }
  }
}

TEST_CASE("parts of tensors of all forms are packed and unpacked") {
  const std::pair<Numbers, Numbers> forms[] = {
      {{}, {}},
      {{7}, {1}},
      {{7}, {3}},
      {{7}, {-1}},
      {{4, 5}, {5, 1}},
      {{4, 5}, {8, 1}},
      {{4, 5}, {1, 4}},
      {{4, 5}, {-5, -1}},
      {{2, 1, 3}, {3, 1000000, 1}},
      {{2, 3, 4}, {12, 4, 1}},
      {{2, 3, 4}, {20, 4, 1}},
      {{2, 3, 4}, {1, 8, 2}},
      {{2, 3, 2, 2}, {24, -8, 2, 1}},
      {{3, 0, 2}, {1, 1, 1}},
      {{1, 1}, {9, 9}},
  };
  for (const auto& form : forms) {
    CAPTURE(form.first.size());
    for (const Dtype dtype :
         {dtype::int8, dtype::float16, dtype::float32, dtype::float64, dtype::complex128,
          Dtype{DtypeCode::unsigned_integer, 8, 3}, Dtype{static_cast<DtypeCode>(99), 40, 1}}) {
      check_all_parts(dtype, form.first, form.second);
    }
  }
}

TEST_CASE("any part of a tensor of random form is packed and unpacked") {
  std::mt19937 dice(20240607);
  const auto below = [&](std::uint64_t end) { return dice() % end; };
  for (int round = 0; round < 300; ++round) {
    // A contiguous tensor's dimensions in another order, some of them backwards or with gaps.
    const std::size_t count = below(5);
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), dice);
    Numbers shape(count);
    Numbers strides(count);
    std::int64_t step = 1;
    for (const std::size_t index : order) {
      shape[index] = static_cast<std::int64_t>(1 + below(4));
      strides[index] = below(3) == 0 ? -step : step;
      step *= shape[index] + (below(4) == 0 ? 1 : 0);
    }
    CAPTURE(round);
    Sample sample(below(2) == 0 ? dtype::int32 : dtype::int16, shape, strides);
    CHECK_FALSE(overlaps_itself(sample.view));
    const std::uint64_t first = below(sample.offsets.size());
    check_part(sample, first, below(sample.offsets.size() - first + 1));
  }
}

TEST_CASE("a tensor without strides is contiguous") {
  std::vector<std::int32_t> numbers(24);
  std::iota(numbers.begin(), numbers.end(), 0);
  const TensorView view = tensor_of(Span<std::int32_t>(numbers), {2, 3, 4});
  std::vector<std::int32_t> part(5);
  pack(part.data(), view, 7, 5);
  CHECK(part == std::vector<std::int32_t>{7, 8, 9, 10, 11});
  CHECK(first_element(view) == static_cast<void*>(numbers.data()));
}

TEST_CASE("nothing is copied of nothing, at no memory") {
  TensorView view;
  view.shape = {0};
  pack(nullptr, view, 0, 0);
  unpack(view, nullptr, 0, 0);
  CHECK(first_element(view) == nullptr);
}

TEST_CASE("a tensor whose elements share a place is known") {
  const auto overlaps = [](Numbers shape, Numbers strides) {
    TensorView view;
    view.shape = std::move(shape);
    view.strides = std::move(strides);
    return overlaps_itself(view);
  };
  CHECK_FALSE(overlaps({}, {}));
  CHECK_FALSE(overlaps({2, 3}, {}));
  CHECK_FALSE(overlaps({2, 3}, {1, 2}));
  CHECK_FALSE(overlaps({2, 3}, {-3, -1}));
  CHECK_FALSE(overlaps({1, 3}, {0, 1}));
  CHECK_FALSE(overlaps({0, 3}, {0, 0}));
  CHECK(overlaps({2}, {0}));
  CHECK(overlaps({3, 2}, {0, 1}));
  CHECK(overlaps({2, 3}, {1, 1}));
  CHECK(overlaps({2, 2}, {1, -1}));
  CHECK(overlaps({4, 3}, {2, 3}));
  CHECK(overlaps({2, 3}, {3, 2}));  // needlessly, as the header says
}

}  // namespace
}  // namespace muster::runtime
