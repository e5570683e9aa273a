#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "muster/codec_cereal.h"
#include "runtime/tensor_job.h"
#include "support/child.h"

// The memory that ranks share for their tensors, and how it ends.

namespace muster::test {
namespace {

TEST_CASE("nothing that ranks share has a name while they use it") {
  Job job(2);
  job.run([&](Runtime& runtime) {
    StatelessProcessGroup& group = *runtime.world().group();
    std::vector<float> numbers(1'000'000, 1);
    must(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum,
                           by(TensorWay::shared_memory)));
    must(group.barrier());
    CHECK(shared_file_count() == 0);
    must(group.barrier());
    if (runtime.rank() == 0) must(send_tensor(runtime.world(), Rank(1), tensor_of(numbers)));
    must(group.barrier());
    CHECK(shared_file_count() == 1);  // until it is received
    must(group.barrier());
    if (runtime.rank() == 1) must(recv_tensor(runtime.world(), Rank(0)));
    must(group.barrier());
    CHECK(shared_file_count() == 0);
    must(group.barrier());
    if (runtime.rank() == 0)  // nobody takes it
      must(send_tensor(runtime.world(), Rank(1), tensor_of(numbers)));
    must(group.barrier());
  });
  CHECK(shared_file_count() == 0);
}

TEST_CASE("the memory of a sent tensor goes when it is received, whether it is wanted or not") {
  Job job(2);
  job.run([](Runtime& runtime) {
    const TensorOptions options = by(TensorWay::shared_memory);
    std::vector<float> numbers(1000, 1);
    for (int count = 0; count < 3; ++count) {
      if (runtime.rank() == 0) {
        must(send_tensor(runtime.world(), Rank(1), tensor_of(numbers), options));
      } else if (count == 1) {
        std::vector<float> fewer(3);
        CHECK(
            must_fail(recv_tensor_into(runtime.world(), Rank(0), tensor_of(fewer), options)).code ==
            ErrorCode::mismatch);
      } else {
        must(recv_tensor(runtime.world(), Rank(0), options));
      }
      must(runtime.world().group()->barrier());
      CHECK(shared_file_count() == 0);
      // The sender notices with its next one.
      CHECK(open_shared_files().size() == 1);
      must(runtime.world().group()->barrier());
    }
  });
  CHECK(open_shared_files().empty());
}

TEST_CASE("a rank that does not come is named, and the group makes new memory when it does") {
  Job job(3);
  job.run([](Runtime& runtime) {
    std::vector<float> numbers(4, 1);
    TensorOptions options = by(TensorWay::shared_memory);
    must(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, options));
    options.timeout = std::chrono::milliseconds(runtime.rank() == 0 ? 100 : 20'000);
    const auto fails = [&] {
      const Error error =
          must_fail(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, options));
      CHECK(error.code == ErrorCode::timed_out);
      CHECK(error.decided_by_rank == 0);
      CHECK(ranks_of(error) == std::vector<int>{2});
      CHECK(error.elapsed > Duration::zero());
      CHECK(error.decided_by_timeout == options.timeout);
    };
    if (runtime.rank() != 2) fails();
    must(runtime.world().group()->barrier());
    // Its late call is the one that has failed, and not the others' next one.
    if (runtime.rank() == 2) fails();
    options.timeout = 20s;
    numbers.assign(4, 1);
    must(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, options));
    CHECK(numbers == std::vector<float>(4, 3));
  });
}

TEST_CASE("a rank that leaves ends what the others wait for in shared memory") {
  Job job(3);
  job.run([](Runtime& runtime) {
    std::vector<float> numbers(4, 1);
    const TensorOptions options = by(TensorWay::shared_memory);
    must(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, options));
    if (runtime.rank() == 1) return;  // the runtime goes, and leaves
    const Error error =
        must_fail(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, options));
    CHECK(error.code == ErrorCode::rank_left);
    // The other one may have left by now, too.
    const std::vector<int> gone = ranks_of(error);
    CHECK(std::find(gone.begin(), gone.end(), 1) != gone.end());
  });
}

TEST_CASE("a forked child does not take part in its parent's place") {
  Job job(2);
  job.run([](Runtime& runtime) {
    std::vector<float> numbers(4, 1);
    must(all_reduce_tensor(runtime.world(), tensor_of(numbers)));
    if (runtime.rank() == 0) {
      const auto called = [&] {
        const auto reduced = all_reduce_tensor(runtime.world(), tensor_of(numbers));
        return reduced ? 1 : static_cast<int>(reduced.error().code);
      };
      CHECK(in_child(called) == static_cast<int>(ErrorCode::forked));
    }
    must(all_reduce_tensor(runtime.world(), tensor_of(numbers)));
    CHECK(numbers == std::vector<float>(4, 4));
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("an interruption ends what the others wait for in shared memory") {
  Job job(2);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& group = *runtime.world().group();
    std::vector<float> numbers(4, 1);
    const TensorOptions options = by(TensorWay::shared_memory);
    must(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, options));
    if (runtime.rank() == 1) {
      must(group.interrupt("another group is to be restored"));
    } else {
      const Error error =
          must_fail(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, options));
      CHECK(error.code == ErrorCode::interrupted);
    }
  });
}

TEST_CASE("where shared memory is asked for and there is none, all ranks are told") {
  Job job(2);
  job.run([](Runtime& runtime) {
    std::vector<float> numbers(4, 1);
    const Error error = must_fail(all_reduce_tensor(*runtime.world().group(), tensor_of(numbers),
                                                    ReduceOp::sum, by(TensorWay::shared_memory)));
    CHECK(error.code == ErrorCode::way_missing);
    CHECK(ranks_of(error) == std::vector<int>{0, 1});
    const Error no_gloo = must_fail(
        all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, by(TensorWay::gloo)));
    CHECK(no_gloo.code == ErrorCode::way_missing);
  });
}

TEST_CASE("shared memory to a rank on another node is refused") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    Environment::Variables variables = variables_of(rank, 2, server.addresses().front());
    variables["LOCAL_RANK"] = "0";
    variables["LOCAL_WORLD_SIZE"] = "1";
    variables["GROUP_RANK"] = std::to_string(rank);
    Runtime runtime{Environment(variables)};
    must(runtime.init(patient()));
    const std::vector<float> numbers(100'000, 1);
    const TensorOptions through_memory = by(TensorWay::shared_memory);
    const auto refused =
        send_tensor(runtime.world(), Rank(1 - rank), tensor_of(numbers), through_memory);
    CHECK(must_fail(refused).code == ErrorCode::way_missing);
    must(send_tensor(runtime.world(), Rank(rank), tensor_of(numbers), through_memory));
    must(recv_tensor(runtime.world(), Rank(rank)));
    must(runtime.world().group()->barrier());
  });
}

}  // namespace
}  // namespace muster::test
