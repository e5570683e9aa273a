#include "runtime/shared/bundle.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/ranks.h"

// The encoding of states: what goes in comes out, and what is damaged is refused.

namespace muster::test {
namespace {

using runtime::BundleCheck;

std::string encoded(const SharedStateView& state, std::uint64_t generation,
                    BundleCheck check = BundleCheck::checksum) {
  std::string bytes;
  must(runtime::encode_bundle(state, generation, check, [&](const void* data, std::uint64_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return Result<void>();
  }));
  return bytes;
}

/// Memory that a sanitizer knows the end of.
class Exactly {
 public:
  explicit Exactly(const std::string& bytes)
      : memory_(new (std::align_val_t(64)) char[bytes.size()]), size_(bytes.size()) {
    if (size_ > 0) std::memcpy(memory_, bytes.data(), size_);
  }
  ~Exactly() { ::operator delete[](memory_, std::align_val_t(64)); }
  Exactly(const Exactly&) = delete;
  Exactly& operator=(const Exactly&) = delete;

  Result<runtime::Bundle> decode(BundleCheck check = BundleCheck::checksum) {
    return runtime::decode_bundle(memory_, size_, check);
  }

 private:
  char* memory_;
  std::uint64_t size_;
};

std::vector<float> floats_of(const TensorView& tensor) {
  std::vector<float> values(tensor.element_count());
  if (!values.empty()) std::memcpy(values.data(), tensor.data, tensor.byte_count());
  return values;
}

/// A small state with all that there is.
class Sample {
 public:
  Sample() {
    std::iota(matrix_.begin(), matrix_.end(), 1.0F);
    TensorView transposed = tensor_of(Span<float>(matrix_), {3, 2});
    transposed.strides = {1, 3};
    TensorView scalar = tensor_of(Span<const std::int64_t>(&number_, 1), {});
    TensorView none = tensor_of(Span<const float>(), {0, 7});
    state.config = "{}";
    state.tensors = {{"w", tensor_of(Span<float>(matrix_), {2, 3})},
                     {"transposed", transposed},
                     {"", scalar},
                     {"none", none}};
  }

  SharedStateView state;

 private:
  std::vector<float> matrix_ = std::vector<float>(6);
  std::int64_t number_ = -5;
};

TEST_CASE("a bundle comes back as it was, strided tensors contiguous") {
  const Sample sample;
  for (const BundleCheck check : {BundleCheck::checksum, BundleCheck::none}) {
    Exactly memory(encoded(sample.state, 77, check));
    const auto bundle = must(memory.decode(check));
    CHECK(bundle.generation == 77);
    CHECK(bundle.state.config == "{}");
    const auto& tensors = bundle.state.tensors;
    REQUIRE(tensors.size() == 4);
    CHECK(tensors[0].name == "w");
    CHECK(floats_of(tensors[0].tensor) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(tensors[1].tensor.shape == std::vector<std::int64_t>{3, 2});
    CHECK(floats_of(tensors[1].tensor) == std::vector<float>{1, 4, 2, 5, 3, 6});
    CHECK(tensors[2].tensor.shape.empty());
    CHECK(tensors[2].tensor.dtype == dtype::int64);
    CHECK(*static_cast<const std::int64_t*>(tensors[2].tensor.data) == -5);
    CHECK(tensors[3].tensor.shape == std::vector<std::int64_t>{0, 7});
    for (const auto& named : tensors)
      CHECK(reinterpret_cast<std::uintptr_t>(named.tensor.data) % 64 == 0);
  }
}

TEST_CASE("large tensors, and many small ones, come back as they were") {
  std::vector<std::uint32_t> numbers(1'000'003);
  std::iota(numbers.begin(), numbers.end(), 0U);
  SharedStateView state;
  TensorView reversed = tensor_of(numbers);
  reversed.strides = {-1};
  reversed.byte_offset = (numbers.size() - 1) * sizeof(numbers[0]);
  state.tensors = {{"all", tensor_of(numbers)}, {"reversed", reversed}};
  for (std::size_t index = 0; index < 1000; ++index)
    state.tensors.push_back(
        {"small", tensor_of(Span<const std::uint32_t>(numbers.data() + index, index))});
  Exactly memory(encoded(state, 1));
  const auto bundle = must(memory.decode());
  const auto value = [&](std::size_t tensor, std::size_t index) {
    std::uint32_t number = 0;
    std::memcpy(
        &number,
        static_cast<const char*>(bundle.state.tensors[tensor].tensor.data) + index * sizeof number,
        sizeof number);
    return number;
  };
  CHECK(value(0, 1'000'002) == 1'000'002);
  CHECK(value(1, 0) == 1'000'002);
  CHECK(value(1, 1'000'002) == 0);
  for (std::size_t index = 1; index < 1000; ++index)
    CHECK(value(index + 2, index - 1) == 2 * index - 1);
}

TEST_CASE("an empty state comes back empty") {
  Exactly memory(encoded({}, 0));
  const auto bundle = must(memory.decode());
  CHECK(bundle.state.config.empty());
  CHECK(bundle.state.tensors.empty());
}

TEST_CASE("every byte that changes is noticed") {
  const std::string whole = encoded(Sample().state, 3);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int flipped : {1, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flipped);
      CAPTURE(at);
      CHECK(must_fail(Exactly(damaged).decode()).code == ErrorCode::codec_failure);
    }
  }
}

TEST_CASE("every length but its own is refused") {
  const std::string whole = encoded(Sample().state, 3);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(must_fail(Exactly(whole.substr(0, size)).decode()).code == ErrorCode::codec_failure);
  CHECK_FALSE(Exactly(whole + '\0').decode());
  CHECK_FALSE(Exactly(whole).decode(BundleCheck::none));
}

TEST_CASE("a table that lies is refused or harmless, also without a checksum") {
  const std::string whole = encoded(Sample().state, 3, BundleCheck::none);
  std::uint64_t refused = 0;
  for (std::size_t at = runtime::bundle_header_bytes; at < whole.size(); ++at) {
    for (int flipped = 1; flipped < 256; ++flipped) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flipped);
      Exactly memory(damaged);
      const auto bundle = memory.decode(BundleCheck::none);
      if (!bundle) {
        ++refused;
        continue;
      }
      // Whatever it describes is inside: a sanitizer looks.
      std::string all(bundle->state.config);
      for (const auto& named : bundle->state.tensors)
        all.append(static_cast<const char*>(named.tensor.data), named.tensor.byte_count());
      CHECK(all.size() <= damaged.size());
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("what cannot be shared is refused before anything is written") {
  float number = 0;
  SharedStateView state;
  state.tensors = {{"w", tensor_of(Span<float>(&number, 1))}};
  CHECK_FALSE(runtime::refusal_of_state(state).has_value());
  state.tensors[0].tensor.device = {DeviceType::cuda, 0};
  CHECK(runtime::refusal_of_state(state)->code == ErrorCode::invalid_argument);
  state.tensors[0].tensor.device = {};
  state.tensors[0].tensor.data = nullptr;
  CHECK(runtime::refusal_of_state(state)->code == ErrorCode::invalid_argument);
  // All of its elements are at one place, so that it needs no memory of that size.
  state.tensors[0].tensor = tensor_of(Span<float>(&number, 1), {std::int64_t{1} << 60});
  state.tensors[0].tensor.strides = {0};
  state.tensors.push_back(state.tensors[0]);
  CHECK(
      must_fail(runtime::encode_bundle(state, 0, BundleCheck::none, [](const void*, std::uint64_t) {
        return Result<void>();
      })).code == ErrorCode::too_large);
}

}  // namespace
}  // namespace muster::test
