#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "muster/tensor.h"
#include "support/sanitizers.h"

// What describes a tensor: its texts, what is refused, and the memory of one's own.

namespace muster::test {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

float one_float = 0;

TensorView view_of_shape(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides = {}) {
  TensorView view;
  view.data = &one_float;
  view.shape = std::move(shape);
  view.strides = std::move(strides);
  return view;
}

bool is_valid(const TensorView& view) {
  const auto valid = validate(view);
  if (!valid) CHECK(valid.error().code == ErrorCode::invalid_argument);
  if (!valid) CHECK(valid.error().detail != "");
  return valid.has_value();
}

TEST_CASE("devices have names, and those without one their numbers") {
  CHECK(to_string(Device{}) == "cpu");
  CHECK(to_string(Device{DeviceType::cpu, 1}) == "cpu:1");
  CHECK(to_string(Device{DeviceType::cuda, 1}) == "cuda:1");
  CHECK(to_string(Device{DeviceType::cuda_host, 0}) == "cuda_host:0");
  CHECK(to_string(Device{DeviceType::cuda_managed, 3}) == "cuda_managed:3");
  CHECK(to_string(Device{static_cast<DeviceType>(7), 0}) == "device 7:0");
  CHECK(Device{DeviceType::rocm_host, 0}.is_host());
  CHECK_FALSE(Device{static_cast<DeviceType>(7), 0}.is_host());
}

TEST_CASE("types of elements have names, whatever their numbers") {
  CHECK(to_string(dtype::float32) == "float32");
  CHECK(to_string(dtype::bfloat16) == "bfloat16");
  CHECK(to_string(dtype::int8) == "int8");
  CHECK(to_string(dtype::uint64) == "uint64");
  CHECK(to_string(dtype::boolean) == "bool");
  CHECK(to_string(dtype::complex128) == "complex128");
  CHECK(to_string(dtype::float8_e4m3fn) == "float8_e4m3fn");
  CHECK(to_string(dtype::float8_e5m2) == "float8_e5m2");
  CHECK(to_string(Dtype{DtypeCode::signed_integer, 8, 4}) == "int8x4");
  CHECK(to_string(Dtype{DtypeCode::float4_e2m1fn, 4, 2}) == "float4_e2m1fnx2");
  CHECK(to_string(Dtype{DtypeCode::boolean, 1, 1}) == "bool:1");
  CHECK(to_string(Dtype{static_cast<DtypeCode>(200), 24, 1}) == "dtype 200:24");
}

TEST_CASE("a view has a text, and ways have names") {
  CHECK(to_string(view_of_shape({2, 3})) == "float32 [2, 3] on cpu");
  CHECK(to_string(view_of_shape({})) == "float32 [] on cpu");
  CHECK(name_of(TensorWay::automatic) == "automatic");
  CHECK(name_of(TensorWay::shared_memory) == "shared_memory");
  CHECK(name_of(static_cast<TensorWay>(77)) == "unknown");
}

TEST_CASE("elements and bytes are counted, and what is contiguous is known") {
  CHECK(view_of_shape({}).element_count() == 1);
  CHECK(view_of_shape({2, 3}).byte_count() == 24);
  CHECK(view_of_shape({2, 0, 3}).byte_count() == 0);
  CHECK(view_of_shape({2, 3}).is_contiguous());
  CHECK(view_of_shape({2, 3}, {3, 1}).is_contiguous());
  CHECK_FALSE(view_of_shape({2, 3}, {1, 2}).is_contiguous());
  CHECK_FALSE(view_of_shape({3}, {-1}).is_contiguous());
  CHECK_FALSE(view_of_shape({3}, {0}).is_contiguous());
  CHECK(view_of_shape({2, 1, 3}, {3, -77, 1}).is_contiguous());  // a size of 1 has no next element
  CHECK(view_of_shape({2, 0}, {5, 7}).is_contiguous());
  CHECK(view_of_shape({}, {}).is_contiguous());
  CHECK_FALSE(view_of_shape({2, 3}, {3}).is_contiguous());
}

TEST_CASE("a view is valid where all of its elements may be") {
  CHECK(is_valid(view_of_shape({})));
  CHECK(is_valid(view_of_shape({2, 3}, {1, 2})));
  CHECK(is_valid(view_of_shape({2, 3}, {0, -1})));
  CHECK(is_valid(view_of_shape({1}, {most})));
  CHECK(is_valid(view_of_shape({0, most, most})));
  CHECK(is_valid(view_of_shape({0, 5}, {least, most})));
  CHECK(is_valid(view_of_shape(std::vector<std::int64_t>(64, 1))));
  TensorView empty = view_of_shape({0});
  empty.data = nullptr;
  CHECK(is_valid(empty));
  TensorView lanes = view_of_shape({1});
  lanes.dtype = {DtypeCode::float4_e2m1fn, 4, 2};
  CHECK(is_valid(lanes));
  TensorView elsewhere = view_of_shape({4}, {-1});
  elsewhere.data = &elsewhere;
  elsewhere.device = {static_cast<DeviceType>(7), 0};
  CHECK(is_valid(elsewhere));
}

TEST_CASE("a view that describes no tensor is refused") {
  CHECK_FALSE(is_valid(view_of_shape({2, -1})));
  CHECK_FALSE(is_valid(view_of_shape({0, -1})));
  CHECK_FALSE(is_valid(view_of_shape({most})));
  CHECK_FALSE(is_valid(view_of_shape({1LL << 31, 1LL << 31})));
  CHECK_FALSE(is_valid(view_of_shape({1LL << 62, 1LL << 62, 1LL << 62})));
  CHECK_FALSE(is_valid(view_of_shape({2, 3}, {3})));
  CHECK_FALSE(is_valid(view_of_shape({}, {1})));
  CHECK_FALSE(is_valid(view_of_shape({2}, {most})));
  CHECK_FALSE(is_valid(view_of_shape({2}, {least})));
  CHECK_FALSE(is_valid(view_of_shape({2}, {-(1LL << 60)})));
  CHECK_FALSE(is_valid(view_of_shape({3, 3}, {1LL << 59, 1LL << 59})));
  CHECK_FALSE(is_valid(view_of_shape(std::vector<std::int64_t>(65, 1))));
  TensorView nowhere = view_of_shape({});
  nowhere.data = nullptr;
  CHECK_FALSE(is_valid(nowhere));
  TensorView outside = view_of_shape({1});
  outside.byte_offset = std::numeric_limits<std::uint64_t>::max();
  CHECK_FALSE(is_valid(outside));
  for (const Dtype dtype : {Dtype{DtypeCode::floating, 0, 1}, Dtype{DtypeCode::floating, 32, 0},
                            Dtype{DtypeCode::float4_e2m1fn, 4, 1}}) {
    TensorView view = view_of_shape({1});
    view.dtype = dtype;
    CHECK_FALSE(is_valid(view));
  }
}

TEST_CASE("numbers are viewed as tensors, const ones read-only") {
  std::vector<double> numbers(6);
  const TensorView view = tensor_of(Span<double>(numbers), {2, 3});
  CHECK(view.data == numbers.data());
  CHECK(to_string(view) == "float64 [2, 3] on cpu");
  CHECK_FALSE(view.is_read_only);
  const std::vector<std::int8_t> fixed(3);
  CHECK(tensor_of(fixed).is_read_only);
  CHECK(to_string(tensor_of(fixed)) == "int8 [3] on cpu");
}

TEST_CASE("a tensor of one's own has aligned memory, which its owner keeps") {
  const Tensor none;
  CHECK(none.view().element_count() == 0);
  auto made = Tensor::make(dtype::int16, {3, 5});
  REQUIRE(made);
  CHECK(is_valid(made->view()));
  CHECK(made->view().byte_count() == 30);
  CHECK(reinterpret_cast<std::uintptr_t>(made->view().data) % 64 == 0);
  const std::weak_ptr<void> memory = made->owner();
  const Tensor moved = *std::move(made);
  CHECK(memory.use_count() == 1);
  auto empty = Tensor::make(dtype::int16, {3, 0});
  REQUIRE(empty);
  CHECK(is_valid(empty->view()));
}

TEST_CASE("a tensor that cannot be made says why") {
  const auto code = [](Dtype dtype, std::vector<std::int64_t> shape) {
    auto made = Tensor::make(dtype, std::move(shape));
    REQUIRE_FALSE(made);
    CHECK(made.error().operation == "Tensor::make");
    return made.error().code;
  };
  CHECK(code(dtype::int16, {-1}) == ErrorCode::invalid_argument);
  CHECK(code(dtype::int16, {most}) == ErrorCode::invalid_argument);
  CHECK(code(Dtype{DtypeCode::floating, 0, 1}, {1}) == ErrorCode::invalid_argument);
#if !MUSTER_TEST_HAS_ASAN && !MUSTER_TEST_HAS_TSAN  // their allocators abort
  CHECK(code(dtype::uint8, {1LL << 62}) == ErrorCode::resource_exhausted);
#endif
}

}  // namespace
}  // namespace muster::test
