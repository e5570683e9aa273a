#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/tensor_job.h"

// all_reduce_tensor and reduce_scatter_tensor, by the ways that need no other library.

namespace muster::test {
namespace {

/// What ranks have got by each way, to be compared afterwards.
class Gathered {
 public:
  void put(TensorWay way, std::vector<float> numbers) {
    const std::lock_guard lock(mutex_);
    of_ways_[way].push_back(std::move(numbers));
  }
  void check(const std::vector<float>& in_order) const {
    for (const auto& found : of_ways_) {
      const TensorWay way = found.first;
      const auto& of_ranks = found.second;
      CAPTURE(name_of(way));
      // Gloo has an order of its own, the same for all ranks.
      const std::vector<float>& expected = way == TensorWay::gloo ? of_ranks.front() : in_order;
      for (const std::vector<float>& numbers : of_ranks) {
        REQUIRE(numbers.size() == in_order.size());
        CHECK(std::memcmp(numbers.data(), expected.data(), expected.size() * sizeof(float)) == 0);
        CHECK(numbers.back() == doctest::Approx(in_order.back()));
      }
    }
  }

 private:
  std::mutex mutex_;
  std::map<TensorWay, std::vector<std::vector<float>>> of_ways_;
};

std::vector<float> sum_in_order(int world_size, std::size_t count) {
  std::vector<float> sum = uneven_numbers(0, count);
  for (int rank = 1; rank < world_size; ++rank) {
    const std::vector<float> numbers = uneven_numbers(rank, count);
    for (std::size_t index = 0; index < count; ++index) sum[index] += numbers[index];
  }
  return sum;
}

TEST_CASE("an all_reduce gives all ranks the sum in the order of ranks, to the last bit") {
  constexpr int world_size = 3;
  // Of one step alone, of one that is shared out, of as much as a part holds without what ranks
  // tell before it, of many chunks with a rest.
  for (const std::size_t count : {1U, 777U, 100'003U, 262'144U, 2'000'003U}) {
    CAPTURE(count);
    Gathered gathered;
    run_every_way(world_size, [&](TensorRanks ranks, int rank, const TensorOptions& options) {
      std::vector<float> numbers = uneven_numbers(rank, count);
      must(all_reduce_tensor(ranks, tensor_of(numbers), ReduceOp::sum, options));
      gathered.put(options.way, std::move(numbers));
    });
    gathered.check(sum_in_order(world_size, count));
  }
}

TEST_CASE("an all_reduce knows its operations") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    const auto reduced = [&](std::vector<std::int32_t> numbers, ReduceOp operation) {
      must(all_reduce_tensor(ranks, tensor_of(numbers), operation, options));
      return numbers;
    };
    const std::vector<std::int32_t> own = {rank == 0 ? 12 : 10, rank == 0 ? -3 : 4};
    CHECK(reduced(own, ReduceOp::sum) == std::vector<std::int32_t>{22, 1});
    CHECK(reduced(own, ReduceOp::product) == std::vector<std::int32_t>{120, -12});
    CHECK(reduced(own, ReduceOp::max) == std::vector<std::int32_t>{12, 4});
    CHECK(reduced(own, ReduceOp::min) == std::vector<std::int32_t>{10, -3});
    CHECK(reduced(own, ReduceOp::bit_and) == std::vector<std::int32_t>{8, -3 & 4});
    CHECK(reduced(own, ReduceOp::bit_or) == std::vector<std::int32_t>{14, -3 | 4});
    CHECK(reduced(own, ReduceOp::bit_xor) == std::vector<std::int32_t>{6, -3 ^ 4});
    std::vector<double> halves = {rank == 0 ? 1.0 : 2.0, std::nan("")};
    must(all_reduce_tensor(ranks, tensor_of(halves), ReduceOp::average, options));
    CHECK(halves[0] == 1.5);
    CHECK(std::isnan(halves[1]));
  });
}

TEST_CASE("a nan of any rank is the maximum and the minimum, by every way") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    for (const ReduceOp operation : {ReduceOp::max, ReduceOp::min}) {
      std::vector<float> numbers = {1, 1, static_cast<float>(rank)};
      numbers[static_cast<std::size_t>(rank)] = std::nanf("");
      must(all_reduce_tensor(ranks, tensor_of(numbers), operation, options));
      CHECK(std::isnan(numbers[0]));
      CHECK(std::isnan(numbers[1]));
      CHECK(numbers[2] == (operation == ReduceOp::max ? 1 : 0));
    }
  });
}

TEST_CASE("a strided tensor is combined in its places") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    // The second column of a matrix of 50,000 rows.
    std::vector<float> matrix(100'000, -1);
    TensorView column = tensor_of(matrix);
    column.shape = {50'000};
    column.strides = {2};
    column.byte_offset = sizeof(float);
    for (std::size_t row = 0; row < 50'000; ++row)
      matrix[2 * row + 1] = static_cast<float>(row) + static_cast<float>(rank);
    must(all_reduce_tensor(ranks, column, ReduceOp::sum, options));
    for (const std::size_t row : {0U, 1U, 49'999U}) {
      CHECK(matrix[2 * row] == -1);
      CHECK(matrix[2 * row + 1] == static_cast<float>(2 * row + 1));
    }
  });
}

TEST_CASE("tensors of no dimension and of no element are combined") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    std::int64_t number = rank + 1;
    must(all_reduce_tensor(ranks, tensor_of(Span<std::int64_t>(&number, 1), {}), ReduceOp::sum,
                           options));
    CHECK(number == 3);
    std::vector<float> none;
    must(all_reduce_tensor(ranks, tensor_of(Span<float>(none), {0, 3}), ReduceOp::sum, options));
  });
}

TEST_CASE("what one rank refuses is an error on all ranks that names it, and the group goes on") {
  run_every_way(3, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    const auto refused = [&](const TensorView& of_rank_1, ReduceOp operation = ReduceOp::sum) {
      std::vector<float> numbers(4, 1);
      const TensorView own = rank == 1 ? of_rank_1 : tensor_of(numbers);
      const Error error = must_fail(all_reduce_tensor(ranks, own, operation, options));
      CHECK(error.operation == "all_reduce_tensor");
      CHECK(ranks_of(error) == std::vector<int>{1});
      return error.code;
    };
    std::vector<float> numbers(4, 1);
    TensorView read_only = tensor_of(numbers);
    read_only.is_read_only = true;
    CHECK(refused(read_only) == ErrorCode::invalid_argument);
    TensorView on_gpu = tensor_of(numbers);
    on_gpu.device = {DeviceType::cuda, 0};
    // Automatic: by NCCL, of which the group has no communicator.
    CHECK(refused(on_gpu) == (options.way == TensorWay::automatic ? ErrorCode::way_missing
                                                                  : ErrorCode::invalid_argument));
    TensorView folded = tensor_of(numbers);
    folded.strides = {0};
    CHECK(refused(folded) == ErrorCode::invalid_argument);
    TensorView nowhere = tensor_of(numbers);
    nowhere.data = nullptr;
    CHECK(refused(nowhere) == ErrorCode::invalid_argument);
    must(all_reduce_tensor(ranks, tensor_of(numbers), ReduceOp::sum, options));
    CHECK(numbers == std::vector<float>(4, 3));
  });
}

TEST_CASE("an operation without a meaning is an error on all ranks") {
  run_every_way(2, [](TensorRanks ranks, int, const TensorOptions& options) {
    std::vector<std::int32_t> integers(2);
    std::vector<float> numbers(2);
    const auto code = [&](const TensorView& tensor, ReduceOp operation) {
      return must_fail(all_reduce_tensor(ranks, tensor, operation, options)).code;
    };
    CHECK(code(tensor_of(integers), ReduceOp::average) == ErrorCode::invalid_argument);
    CHECK(code(tensor_of(numbers), ReduceOp::bit_or) == ErrorCode::invalid_argument);
    CHECK(code(tensor_of(numbers), static_cast<ReduceOp>(99)) == ErrorCode::invalid_argument);
    TensorView complex = tensor_of(numbers);
    complex.dtype = dtype::complex64;
    complex.shape = {1};
    CHECK(code(complex, ReduceOp::sum) == ErrorCode::invalid_argument);
  });
}

TEST_CASE("ranks whose tensors or calls differ from rank 0's are named") {
  run_every_way(3, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    std::vector<float> numbers(6, 1);
    std::vector<double> doubles(6, 1);
    const auto differs = [&](const TensorView& own, ReduceOp operation = ReduceOp::sum) {
      const Error error = must_fail(all_reduce_tensor(ranks, own, operation, options));
      CHECK(ranks_of(error) == std::vector<int>{2});
      return error.code;
    };
    const TensorView flat = tensor_of(numbers);
    CHECK(differs(rank == 2 ? tensor_of(Span<float>(numbers), {2, 3}) : flat) ==
          ErrorCode::mismatch);
    CHECK(differs(rank == 2 ? tensor_of(doubles) : flat) == ErrorCode::mismatch);
    CHECK(differs(flat, rank == 2 ? ReduceOp::max : ReduceOp::sum) == ErrorCode::mismatch);
    const Error other =
        must_fail(rank == 2 ? broadcast_tensor(ranks, flat, Rank(0), options)
                            : all_reduce_tensor(ranks, flat, ReduceOp::sum, options));
    CHECK(other.code == ErrorCode::collective_mismatch);
    CHECK(ranks_of(other) == std::vector<int>{2});
  });
}

TEST_CASE("V2: sums over two groups that overlap: rank 3 sees 6, the others 18") {
  Job job(4);
  job.run([](Runtime& runtime) {
    std::vector<float> numbers(16, static_cast<float>(runtime.rank()));
    must(all_reduce_tensor(runtime.world(), tensor_of(numbers)));
    if (runtime.rank() < 3) {
      auto three = must(runtime.subgroup(Span<const int>({0, 1, 2})));
      must(all_reduce_tensor(three, tensor_of(numbers)));
      must(three.group()->barrier());
    }
    CHECK(numbers == std::vector<float>(16, runtime.rank() == 3 ? 6.0F : 18.0F));
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("a single rank's tensors stay as they are") {
  Runtime runtime{Environment()};
  must(runtime.init(patient()));
  std::vector<float> numbers = {1, 2, 3};
  must(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::average));
  CHECK(numbers == std::vector<float>{1, 2, 3});
  must(broadcast_tensor(runtime.world(), tensor_of(numbers), Rank(0)));
  CHECK(must(all_gather_tensor(runtime.world(), tensor_of(numbers))).size() == 1);
  TensorOptions options;
  options.way = TensorWay::shared_memory;
  std::vector<float> many(3'000'000, 1);
  must(all_reduce_tensor(runtime.world(), tensor_of(many), ReduceOp::sum, options));
  CHECK(many == std::vector<float>(3'000'000, 1));
  must(runtime.shutdown());
}

TEST_CASE("a reduce_scatter gives each rank its part, in small and in large") {
  constexpr int world_size = 3;
  for (const std::int64_t rows : {1, 250'000}) {
    CAPTURE(rows);
    run_every_way(world_size, [&](TensorRanks ranks, int rank, const TensorOptions& options) {
      std::vector<std::int64_t> send;
      for (std::int64_t row = 0; row < world_size * rows; ++row)
        for (const std::int64_t column : {0, 1}) send.push_back(10 * row + column + rank);
      std::vector<std::int64_t> receive(static_cast<std::size_t>(2 * rows));
      must(reduce_scatter_tensor(ranks, tensor_of(Span<std::int64_t>(send), {world_size * rows, 2}),
                                 tensor_of(Span<std::int64_t>(receive), {rows, 2}), ReduceOp::sum,
                                 options));
      for (std::int64_t row : {std::int64_t{0}, rows - 1}) {
        CHECK(receive[static_cast<std::size_t>(2 * row)] == 3 * 10 * (rank * rows + row) + 3);
        CHECK(receive[static_cast<std::size_t>(2 * row + 1)] == 3 * 10 * (rank * rows + row) + 6);
      }
    });
  }
}

TEST_CASE("a reduce_scatter refuses parts that do not fit, and one inside the whole") {
  run_every_way(2, [](TensorRanks ranks, int, const TensorOptions& options) {
    std::vector<float> numbers(8);
    std::vector<float> part(4);
    const auto code = [&](const TensorView& send, const TensorView& receive) {
      return must_fail(reduce_scatter_tensor(ranks, send, receive, ReduceOp::sum, options)).code;
    };
    CHECK(code(tensor_of(numbers), tensor_of(Span<float>(part), {3})) ==
          ErrorCode::invalid_argument);
    CHECK(code(tensor_of(numbers), tensor_of(Span<float>(part), {2, 2})) ==
          ErrorCode::invalid_argument);
    CHECK(code(tensor_of(Span<float>(numbers), {}), tensor_of(Span<float>(part), {})) ==
          ErrorCode::invalid_argument);
    CHECK(code(tensor_of(numbers), tensor_of(Span<float>(numbers.data() + 2, 4))) ==
          ErrorCode::invalid_argument);
    constexpr std::int64_t large = std::int64_t{1} << 62;
    CHECK(code(tensor_of(Span<float>(), {4, 0}), tensor_of(Span<float>(), {large + 2, 0})) ==
          ErrorCode::invalid_argument);
  });
}

}  // namespace
}  // namespace muster::test
