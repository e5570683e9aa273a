#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "muster/runtime_nccl.h"
#include "muster/tensor.h"
#include "nccl/communicator_machine.h"
#include "runtime/tensor_job.h"

// Calls of muster/tensor.h on tensors of CUDA devices, by NCCL.

namespace muster::test {
namespace {

/// A tensor of int32 on a device.
class DeviceTensor {
 public:
  DeviceTensor(int device, std::vector<std::int64_t> shape)
      : device_(device), shape_(std::move(shape)) {
    std::size_t count = 1;
    for (const std::int64_t size : shape_) count *= static_cast<std::size_t>(size);
    count_ = count;
    buffer_ = std::make_shared<Buffer>(device, count == 0 ? 1 : count);
  }
  DeviceTensor(int device, const std::vector<std::int32_t>& numbers)
      : DeviceTensor(device, std::vector<std::int64_t>{static_cast<std::int64_t>(numbers.size())}) {
    buffer_->fill(numbers);
  }

  TensorView view() const {
    TensorView view;
    view.data = buffer_->at();
    view.device = {DeviceType::cuda, device_};
    view.dtype = dtype::int32;
    view.shape = shape_;
    return view;
  }
  void* stream() const { return buffer_->stream(); }
  /// stream  on which they were written
  std::vector<std::int32_t> numbers(void* stream) const {
    REQUIRE(cuda().synchronize_stream(stream) == 0);
    std::vector<std::int32_t> numbers = buffer_->values();
    numbers.resize(count_);
    return numbers;
  }
  const std::shared_ptr<Buffer>& owner() const { return buffer_; }

 private:
  int device_;
  std::vector<std::int64_t> shape_;
  std::size_t count_ = 0;
  std::shared_ptr<Buffer> buffer_;
};

std::vector<std::int32_t> numbers_on(const Tensor& tensor, void* stream) {
  REQUIRE(cuda().synchronize_stream(stream) == 0);
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(tensor.view().element_count()));
  if (numbers.empty()) return numbers;
  REQUIRE(cuda().copy_out(numbers.data(), reinterpret_cast<DevicePointer>(tensor.view().data),
                          numbers.size() * sizeof numbers[0]) == 0);
  return numbers;
}

/// As a host does that has device memory.
TensorOptions on(int device, void* stream) {
  TensorOptions options;
  options.timeout = 20s;
  options.stream = stream;
  options.allocate = [device](Device where, Dtype dtype, const std::vector<std::int64_t>& shape) {
    if (where.is_host()) return Tensor::make(dtype, shape);
    const DeviceTensor made(device, shape);
    TensorView view = made.view();
    view.dtype = dtype;
    return Result<Tensor>(Tensor(view, made.owner()));
  };
  return options;
}

void run_on_devices(int world_size, const std::function<void(Runtime& runtime, int rank)>& part) {
  Machine machine;
  Job job(world_size);
  RuntimeOptions options = patient();
  options.communicators = "nccl";
  options.makers = {nccl_maker(doubled())};
  job.run(
      [&](Runtime& runtime) {
        part(runtime, runtime.rank());
        must(runtime.shutdown());
      },
      options);
}

TEST_CASE("tensors on devices are combined, broadcast and scattered by NCCL") {
  run_on_devices(3, [](Runtime& runtime, int rank) {
    const DeviceTensor tensor(rank, std::vector<std::int32_t>{rank, 10 * rank, 1});
    const TensorOptions options = on(rank, tensor.stream());
    must(all_reduce_tensor(runtime.world(), tensor.view(), ReduceOp::sum, options));
    CHECK(tensor.numbers(tensor.stream()) == std::vector<std::int32_t>{3, 30, 3});
    const DeviceTensor given(rank, std::vector<std::int32_t>{rank, rank, rank});
    must(broadcast_tensor(runtime.world(), given.view(), Rank(2), options));
    CHECK(given.numbers(tensor.stream()) == std::vector<std::int32_t>{2, 2, 2});
    const DeviceTensor part(rank, std::vector<std::int32_t>{0});
    must(
        reduce_scatter_tensor(runtime.world(), tensor.view(), part.view(), ReduceOp::max, options));
    CHECK(part.numbers(tensor.stream()) == std::vector<std::int32_t>{rank == 1 ? 30 : 3});
  });
}

TEST_CASE("tensors of different shapes on devices are gathered, into memory of the host's") {
  run_on_devices(3, [](Runtime& runtime, int rank) {
    const DeviceTensor tensor(
        rank, std::vector<std::int32_t>(static_cast<std::size_t>(2 * rank), rank + 5));
    const auto all =
        must(all_gather_tensor(runtime.world(), tensor.view(), on(rank, tensor.stream())));
    REQUIRE(all.size() == 3);
    for (int other = 0; other < 3; ++other) {
      const Tensor& its = all[static_cast<std::size_t>(other)];
      CHECK(its.view().device == Device{DeviceType::cuda, rank});
      CHECK(numbers_on(its, tensor.stream()) ==
            std::vector<std::int32_t>(static_cast<std::size_t>(2 * other), other + 5));
    }
    TensorOptions without = on(rank, tensor.stream());
    without.allocate = {};
    const Error error = must_fail(all_gather_tensor(runtime.world(), tensor.view(), without));
    CHECK(error.code == ErrorCode::invalid_argument);
  });
}

TEST_CASE("a tensor on a device is sent to another one, and to host memory it is not") {
  run_on_devices(2, [](Runtime& runtime, int rank) {
    const DeviceTensor tensor(rank, std::vector<std::int32_t>{rank + 1, rank + 2});
    const TensorOptions options = on(rank, tensor.stream());
    if (rank == 0) {
      must(send_tensor(runtime.world(), Rank(1), tensor.view(), options));
      const Error error = must_fail(send_tensor(runtime.world(), Rank(1), tensor.view(), options));
      CHECK(error.code == ErrorCode::mismatch);
    } else {
      must(recv_tensor_into(runtime.world(), Rank(0), tensor.view(), options));
      CHECK(tensor.numbers(tensor.stream()) == std::vector<std::int32_t>{1, 2});
      const Error error = must_fail(recv_tensor(runtime.world(), Rank(0), options));
      CHECK(error.code == ErrorCode::mismatch);
    }
  });
}

TEST_CASE("a state dict comes with what is on devices and what is in host memory") {
  run_on_devices(2, [](Runtime& runtime, int rank) {
    const DeviceTensor on_device(rank, std::vector<std::int32_t>{4, 5});
    std::vector<float> in_memory = {1.5F};
    const std::vector<NamedTensorView> tensors = {{"a", tensor_of(in_memory)},
                                                  {"b", on_device.view()}};
    StateDictOptions options;
    static_cast<TensorOptions&>(options) = on(rank, on_device.stream());
    std::optional<Span<const NamedTensorView>> own;
    if (rank == 0) own = Span<const NamedTensorView>(tensors);
    const auto received = must(broadcast_state_dict(runtime.world(), own, Rank(0), options));
    if (rank == 1) {
      CHECK(numbers_of<float>(received[0].tensor.view()) == in_memory);
      CHECK(numbers_on(received[1].tensor, on_device.stream()) == std::vector<std::int32_t>{4, 5});
    }
  });
}

TEST_CASE("what NCCL does not do is refused on all ranks, and the communicator goes on") {
  run_on_devices(2, [](Runtime& runtime, int rank) {
    const DeviceTensor tensor(rank, std::vector<std::int32_t>{1, 2, 3, 4});
    const auto code = [&](const TensorView& view, ReduceOp operation, TensorWay way) {
      TensorOptions options = on(rank, tensor.stream());
      options.way = way;
      const Error error = must_fail(all_reduce_tensor(runtime.world(), view, operation, options));
      CHECK(ranks_of(error) == std::vector<int>{0, 1});
      return error.code;
    };
    TensorView strided = tensor.view();
    strided.shape = {2};
    strided.strides = {2};
    CHECK(code(strided, ReduceOp::sum, TensorWay::automatic) == ErrorCode::invalid_argument);
    CHECK(code(tensor.view(), ReduceOp::bit_or, TensorWay::nccl) == ErrorCode::invalid_argument);
    CHECK(code(tensor.view(), ReduceOp::sum, TensorWay::store) == ErrorCode::invalid_argument);
    std::vector<std::int32_t> in_memory(4);
    CHECK(code(tensor_of(in_memory), ReduceOp::sum, TensorWay::nccl) ==
          ErrorCode::invalid_argument);
    TensorView odd = tensor.view();
    odd.dtype = dtype::int16;
    CHECK(code(odd, ReduceOp::sum, TensorWay::automatic) == ErrorCode::invalid_argument);
    must(all_reduce_tensor(runtime.world(), tensor.view(), ReduceOp::sum,
                           on(rank, tensor.stream())));
    CHECK(tensor.numbers(tensor.stream()) == std::vector<std::int32_t>{2, 4, 6, 8});
  });
}

}  // namespace
}  // namespace muster::test
