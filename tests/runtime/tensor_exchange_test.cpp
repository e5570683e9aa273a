#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "muster/codec_cereal.h"
#include "runtime/tensor_job.h"
#include "support/child.h"

// Tensors that ranks give each other: broadcast, all_gather, send and receive, state dicts.

namespace muster::test {
namespace {

TEST_CASE("a broadcast fills the tensors of all ranks") {
  for (const std::size_t count : {1U, 5'000U, 3'000'001U}) {
    CAPTURE(count);
    run_every_way(3, [&](TensorRanks ranks, int rank, const TensorOptions& options) {
      const std::vector<std::int32_t> sent = counted(count, 7);
      std::vector<std::int32_t> numbers(count);
      const TensorView own = rank == 1 ? tensor_of(sent) : tensor_of(numbers);
      must(broadcast_tensor(ranks, own, Rank(1), options));
      if (rank != 1) CHECK(numbers == sent);
    });
  }
}

TEST_CASE("a broadcast from no rank, or from different ones, is an error on all") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    std::vector<float> numbers(3);
    const Error nobody = must_fail(broadcast_tensor(ranks, tensor_of(numbers), Rank(2), options));
    CHECK(nobody.code == ErrorCode::invalid_argument);
    const Error others =
        must_fail(broadcast_tensor(ranks, tensor_of(numbers), Rank(rank), options));
    CHECK(others.code == ErrorCode::mismatch);
    CHECK(ranks_of(others) == std::vector<int>{1});
  });
}

TEST_CASE("an all_gather takes shapes that differ, and tensors without elements") {
  for (const std::int64_t rows : {2, 600'000}) {
    CAPTURE(rows);
    run_every_way(4, [&](TensorRanks ranks, int rank, const TensorOptions& options) {
      // [0], [rows, 1], [rows, 2], and a number alone.
      std::vector<std::int32_t> numbers =
          counted(rank == 3 ? 1 : static_cast<std::size_t>(rank * rows), rank);
      std::vector<std::int64_t> shape = {rows, rank};
      if (rank == 0) shape = {0};
      if (rank == 3) shape = {};
      const auto all =
          must(all_gather_tensor(ranks, tensor_of(Span<std::int32_t>(numbers), shape), options));
      REQUIRE(all.size() == 4);
      CHECK(all[0].view().shape == std::vector<std::int64_t>{0});
      CHECK(all[1].view().shape == std::vector<std::int64_t>{rows, 1});
      CHECK(all[2].view().shape == std::vector<std::int64_t>{rows, 2});
      CHECK(all[3].view().shape.empty());
      CHECK(numbers_of<std::int32_t>(all[2].view()) ==
            counted(static_cast<std::size_t>(2 * rows), 2));
      CHECK(numbers_of<std::int32_t>(all[3].view()) == std::vector<std::int32_t>{3});
    });
  }
}

TEST_CASE("an all_gather of different dtypes names the ranks") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    const std::vector<float> floats(2);
    const std::vector<double> doubles(2);
    const TensorView own = rank == 0 ? tensor_of(floats) : tensor_of(doubles);
    const Error error = must_fail(all_gather_tensor(ranks, own, options));
    CHECK(error.code == ErrorCode::mismatch);
    CHECK(ranks_of(error) == std::vector<int>{1});
  });
}

TEST_CASE(
    "a rank without memory for what an all_gather gives is named to all, and the group goes on") {
  run_every_way(3, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    const std::vector<float> numbers(2'000'000, 1);  // does not go along with the first step
    TensorOptions without_memory = options;
    without_memory.allocate = [](Device, Dtype, const std::vector<std::int64_t>&) {
      Error error;
      error.code = ErrorCode::resource_exhausted;
      return Result<Tensor>(error);
    };
    const Error error = must_fail(
        all_gather_tensor(ranks, tensor_of(numbers), rank == 1 ? without_memory : options));
    CHECK(error.code == ErrorCode::resource_exhausted);
    CHECK(ranks_of(error) == std::vector<int>{1});
    CHECK(must(all_gather_tensor(ranks, tensor_of(numbers), options)).size() == 3);
  });
}

TEST_CASE("V6: two senders to one receiver keep their streams apart") {
  for (const std::size_t count : {3U, 500'000U}) {
    CAPTURE(count);
    run_every_way(3, [&](TensorRanks ranks, int rank, const TensorOptions& options) {
      if (rank != 0) {
        for (std::int32_t number = 0; number < 3; ++number) {
          const auto sent = counted(count, 100 * rank + number);
          must(send_tensor(ranks, Rank(0), tensor_of(sent), options));
        }
      } else {
        for (std::int32_t number = 0; number < 3; ++number) {
          for (const int source : {2, 1}) {
            const Tensor tensor = must(recv_tensor(ranks, Rank(source), options));
            CHECK(tensor.view().shape == std::vector<std::int64_t>{static_cast<int>(count)});
            CHECK(numbers_of<std::int32_t>(tensor.view()) == counted(count, 100 * source + number));
          }
        }
      }
      must(ranks.group()->barrier());
    });
  }
}

TEST_CASE("a tensor is received into one that is there, if it fits; tags tell streams apart") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    // By Gloo a sender waits for its receiver, who takes the second one first.
    if (options.way == TensorWay::gloo) return;
    TensorOptions tagged = options;
    tagged.tag = Tag(5);
    const auto first = counted(70'000, 1);
    const auto second = counted(70'000, 2);
    if (rank == 0) {
      must(send_tensor(ranks, Rank(1), tensor_of(first), options));
      must(send_tensor(ranks, Rank(1), tensor_of(second), tagged));
      must(send_tensor(ranks, Rank(1), tensor_of(first), options));
    } else {
      // Every other number of a larger array.
      std::vector<std::int32_t> array(140'000, -1);
      TensorView every_other = tensor_of(array);
      every_other.shape = {70'000};
      every_other.strides = {2};
      must(recv_tensor_into(ranks, Rank(0), every_other, tagged));
      CHECK(array[0] == 2);
      CHECK(array[1] == -1);
      CHECK(array[139'998] == 70'001);
      std::vector<std::int32_t> small(3);
      const Error error = must_fail(recv_tensor_into(ranks, Rank(0), tensor_of(small), options));
      CHECK(error.code == ErrorCode::mismatch);
      CHECK(ranks_of(error) == std::vector<int>{0});
      // It was received: the next one comes.
      CHECK(numbers_of<std::int32_t>(must(recv_tensor(ranks, Rank(0), options)).view()) == first);
    }
    must(ranks.group()->barrier());
  });
}

TEST_CASE("a receiver that waits for another tensor tells its sender so") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    std::vector<float> numbers(70'000, 1);
    std::vector<float> fewer(3);
    if (rank == 1) {
      const Error error = must_fail(recv_tensor_into(ranks, Rank(0), tensor_of(fewer), options));
      CHECK(error.code == ErrorCode::mismatch);
      CHECK(ranks_of(error) == std::vector<int>{0});
    } else if (options.way == TensorWay::gloo) {
      const Error error = must_fail(send_tensor(ranks, Rank(1), tensor_of(numbers), options));
      CHECK(error.code == ErrorCode::mismatch);
      CHECK(ranks_of(error) == std::vector<int>{1});
    } else {
      must(send_tensor(ranks, Rank(1), tensor_of(numbers), options));
    }
    must(ranks.group()->barrier());
  });
}

TEST_CASE("what a receiver has sent before is not taken for its answer to a sender") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    const auto sent = counted(70'000, 10 * rank);
    if (rank == 0) {
      must(send_tensor(ranks, Rank(1), tensor_of(sent), options));
    } else {
      must(send_tensor(ranks, Rank(0), tensor_of(sent), by(TensorWay::store)));
    }
    const Tensor received = must(recv_tensor(ranks, Rank(1 - rank), options));
    CHECK(numbers_of<std::int32_t>(received.view()) == counted(70'000, 10 * (1 - rank)));
    must(ranks.group()->barrier());
  });
}

TEST_CASE("a tensor whose sender has given up is not taken for the next one") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    if (options.way != TensorWay::gloo) return;
    const auto first = counted(10, 1);
    const auto second = counted(20, 2);
    StatelessProcessGroup& group = *ranks.group();
    if (rank == 0) {
      TensorOptions hasty = options;
      hasty.timeout = std::chrono::milliseconds(50);
      const Error error = must_fail(send_tensor(ranks, Rank(1), tensor_of(first), hasty));
      CHECK(error.code == ErrorCode::timed_out);
      CHECK_FALSE(error.stream);
      must(group.barrier());
      must(send_tensor(ranks, Rank(1), tensor_of(second), options));
    } else {
      must(group.barrier());
      const Error error = must_fail(recv_tensor(ranks, Rank(0), options));
      CHECK(error.code == ErrorCode::timed_out);
      CHECK(ranks_of(error) == std::vector<int>{0});
      CHECK(numbers_of<std::int32_t>(must(recv_tensor(ranks, Rank(0), options)).view()) == second);
    }
  });
}

TEST_CASE("an object where a tensor is received is a codec_mismatch, and stays") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    if (rank == 0) {
      must(ranks.group()->send_obj(Rank(1), std::string("no tensor")));
    } else {
      CHECK(must_fail(recv_tensor(ranks, Rank(0), options)).code == ErrorCode::codec_mismatch);
      CHECK(must(ranks.group()->recv_obj<std::string>(Rank(0))) == "no tensor");
    }
    must(ranks.group()->barrier());
  });
}

TEST_CASE("a sender cannot name a file that is no tensor's, for its receiver to remove") {
  const std::string name = "muster-test-" + std::to_string(::getpid());
  const std::string path = "/dev/shm/" + name;
  Job job(2);
  job.run([&](Runtime& runtime) {
    StatelessProcessGroup& group = *runtime.world().group();
    std::vector<float> numbers(3);
    if (runtime.rank() == 0) {
      must(send_tensor(runtime.world(), Rank(1), tensor_of(numbers), by(TensorWay::shared_memory)));
      std::ofstream(path) << "twelve bytes";
      const Error refused =
          must_fail(recv_tensor(runtime.world(), Rank(1), by(TensorWay::shared_memory)));
      CHECK(refused.code == ErrorCode::protocol_error);
      CHECK(ranks_of(refused) == std::vector<int>{1});
      CHECK(std::filesystem::remove(path));
    } else {
      std::string parcel = must(group.recv_bytes(Rank(0), codec_id::tensor, Tag(), 20s)).bytes;
      const std::size_t at = parcel.find("muster-tensor-");
      REQUIRE(at != parcel.npos);
      CHECK(std::filesystem::remove("/dev/shm/" + parcel.substr(at)));
      must(group.send_bytes(Rank(0), codec_id::tensor, parcel.substr(0, at) + name, Tag(), 20s));
    }
  });
}

TEST_CASE("sends and receives refuse what they cannot do") {
  Job job(2);
  job.run([](Runtime& runtime) {
    std::vector<float> numbers(3);
    const auto code = [&](const TensorView& tensor, const TensorOptions& options, int rank = 1) {
      return must_fail(send_tensor(runtime.world(), Rank(rank), tensor, options)).code;
    };
    TensorView on_gpu = tensor_of(numbers);
    on_gpu.device = {DeviceType::cuda, 0};
    CHECK(code(on_gpu, by(TensorWay::store)) == ErrorCode::invalid_argument);
    CHECK(code(on_gpu, by(TensorWay::automatic)) == ErrorCode::way_missing);
    CHECK(code(tensor_of(numbers), by(TensorWay::gloo)) == ErrorCode::way_missing);
    CHECK(code(tensor_of(numbers), by(TensorWay::store), 2) == ErrorCode::invalid_argument);
    RankGroup nobody;
    CHECK(must_fail(send_tensor(nobody, Rank(0), tensor_of(numbers))).code ==
          ErrorCode::not_initialized);
    CHECK(must_fail(all_reduce_tensor(nobody, tensor_of(numbers))).code ==
          ErrorCode::not_initialized);
    TensorOptions hasty;
    hasty.timeout = Duration::zero();
    CHECK(must_fail(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, hasty))
              .code == ErrorCode::invalid_argument);
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("M1: a state dict comes to all ranks, from each in turn") {
  constexpr int world_size = 3;
  for (const std::size_t rows : {3U, 400'000U}) {
    CAPTURE(rows);
    run_every_way(world_size, [&](TensorRanks ranks, int rank, const TensorOptions& options) {
      StateDictOptions of_dict;
      static_cast<TensorOptions&>(of_dict) = options;
      of_dict.bucket_bytes = 100'000;  // ends within tensors
      for (int root = 0; root < world_size; ++root) {
        std::vector<float> weights(4 * rows, static_cast<float>(root));
        std::vector<std::uint8_t> bias(7, static_cast<std::uint8_t>(root + 1));
        std::vector<double> none;
        std::vector<NamedTensorView> tensors = {
            {"w", tensor_of(Span<float>(weights), {static_cast<std::int64_t>(rows), 4})},
            {"none", tensor_of(none)},
            {"b", tensor_of(bias)}};
        // Transposed, so that it is strided.
        std::swap(tensors[0].tensor.shape[0], tensors[0].tensor.shape[1]);
        tensors[0].tensor.strides = {1, 4};
        std::optional<Span<const NamedTensorView>> own;
        if (rank == root) own = Span<const NamedTensorView>(tensors);
        const auto received = must(broadcast_state_dict(ranks, own, Rank(root), of_dict));
        CHECK(received.size() == (rank == root ? 0 : 3));
        if (rank == root) continue;
        CHECK(received[0].name == "w");
        CHECK(received[0].tensor.view().shape ==
              std::vector<std::int64_t>{4, static_cast<std::int64_t>(rows)});
        CHECK(numbers_of<float>(received[0].tensor.view()) == weights);
        CHECK(received[1].tensor.view().element_count() == 0);
        CHECK(received[2].name == "b");
        CHECK(numbers_of<std::uint8_t>(received[2].tensor.view()) == bias);
      }
    });
  }
}

TEST_CASE("a state dict whose names no object can hold fails on all ranks") {
  ServerOptions small;
  small.value_bytes_max = 4000;
  auto server = start_server(small);
  run_ranks(2, [&](int rank) {
    Runtime runtime(Environment(variables_of(rank, 2, server.addresses().front())));
    must(runtime.init(patient()));
    std::vector<float> numbers(1);
    const std::vector<NamedTensorView> tensors(
        200, {"a name of some length, of one of many", tensor_of(numbers)});
    std::optional<Span<const NamedTensorView>> own;
    if (rank == 0) own = Span<const NamedTensorView>(tensors);
    const Error error = must_fail(broadcast_state_dict(runtime.world(), own));
    CHECK(error.code == ErrorCode::too_large);
    REQUIRE(ranks_of(error) == std::vector<int>{0});
    CHECK(error.ranks[0].joined);
    CHECK(error.ranks[0].process.pid != 0);
    // An element that no step can hold.
    std::vector<float> many(1024);
    TensorView wide = tensor_of(many);
    wide.dtype = {DtypeCode::opaque, 128, 256};
    wide.shape = {1};
    CHECK(must_fail(broadcast_tensor(*runtime.world().group(), wide, Rank(0))).code ==
          ErrorCode::too_large);
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("a root without tensors, and one with some that cannot go, are named to all") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    StateDictOptions of_dict;
    static_cast<TensorOptions&>(of_dict) = options;
    const Error none = must_fail(broadcast_state_dict(ranks, {}, Rank(1), of_dict));
    CHECK(none.code == ErrorCode::invalid_argument);
    CHECK(ranks_of(none) == std::vector<int>{1});
    std::vector<float> numbers(2);
    std::vector<NamedTensorView> tensors = {{"w", tensor_of(numbers)}};
    const Error both = must_fail(
        broadcast_state_dict(ranks, Span<const NamedTensorView>(tensors), Rank(1), of_dict));
    CHECK(both.code == ErrorCode::invalid_argument);
    CHECK(ranks_of(both) == std::vector<int>{0});
    tensors[0].tensor.data = nullptr;
    std::optional<Span<const NamedTensorView>> own;
    if (rank == 0) own = Span<const NamedTensorView>(tensors);
    const Error bad = must_fail(broadcast_state_dict(ranks, own, Rank(0), of_dict));
    CHECK(bad.code == ErrorCode::invalid_argument);
    CHECK(ranks_of(bad) == std::vector<int>{0});
    of_dict.allocate = [](Device, Dtype, const std::vector<std::int64_t>&) -> Result<Tensor> {
      Error error;
      error.code = ErrorCode::resource_exhausted;
      return error;
    };
    tensors[0].tensor = tensor_of(numbers);
    const Error full = must_fail(broadcast_state_dict(ranks, own, Rank(0), of_dict));
    CHECK(full.code == ErrorCode::resource_exhausted);
    CHECK(ranks_of(full) == std::vector<int>{1});
  });
}

TEST_CASE("an exception of the host's allocation is its own rank's; the others are told its text") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    StateDictOptions of_dict;
    static_cast<TensorOptions&>(of_dict) = options;
    const auto throws = [](Device, Dtype, const std::vector<std::int64_t>&) -> Result<Tensor> {
      throw std::runtime_error("the pool is gone");
    };
    if (rank == 1) of_dict.allocate = throws;
    const std::vector<float> few(3, 1);
    if (rank == 1) {
      CHECK_THROWS_AS(static_cast<void>(all_gather_tensor(ranks, tensor_of(few), of_dict)),
                      std::runtime_error);
    } else {
      CHECK(ranks_of(must_fail(all_gather_tensor(ranks, tensor_of(few), of_dict))) ==
            std::vector<int>{1});
    }
    std::vector<float> numbers(1'500'000, 1);
    const std::vector<NamedTensorView> tensors = {{"w", tensor_of(numbers)}};
    std::optional<Span<const NamedTensorView>> own;
    if (rank == 0) own = Span<const NamedTensorView>(tensors);
    if (rank == 1) {
      CHECK_THROWS_AS(static_cast<void>(all_gather_tensor(ranks, tensor_of(numbers), of_dict)),
                      std::runtime_error);
      CHECK_THROWS_AS(static_cast<void>(broadcast_state_dict(ranks, own, Rank(0), of_dict)),
                      std::runtime_error);
    } else {
      const Error error = must_fail(all_gather_tensor(ranks, tensor_of(numbers), of_dict));
      CHECK(error.code == ErrorCode::callback_failed);
      CHECK(ranks_of(error) == std::vector<int>{1});
      CHECK(must_fail(broadcast_state_dict(ranks, own, Rank(0), of_dict)).code ==
            ErrorCode::callback_failed);
    }
    must(ranks.group()->barrier());
  });
}

TEST_CASE("memory of another shape than a call has asked for is not written") {
  run_every_way(2, [](TensorRanks ranks, int rank, const TensorOptions& options) {
    TensorOptions short_of_memory = options;
    short_of_memory.allocate = [](Device, Dtype dtype, const std::vector<std::int64_t>&) {
      return Tensor::make(dtype, {1});
    };
    for (const std::size_t count : {3U, 700'000U}) {
      const std::vector<float> numbers(count);
      const auto gathered = all_gather_tensor(ranks, tensor_of(numbers), short_of_memory);
      CHECK(must_fail(gathered).code == ErrorCode::invalid_argument);
    }
    const std::vector<float> numbers(70'000);
    if (rank == 1) {
      const auto received = recv_tensor(ranks, Rank(0), short_of_memory);
      CHECK(must_fail(received).code == ErrorCode::invalid_argument);
    } else if (const auto sent = send_tensor(ranks, Rank(1), tensor_of(numbers), options); !sent) {
      CHECK(options.way == TensorWay::gloo);
      CHECK(sent.error().code == ErrorCode::mismatch);
    }
    must(ranks.group()->barrier());
  });
}

TEST_CASE("V3, V4: strings are broadcast, and ranks gathered") {
  Job job(4);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& group = *runtime.world().group();
    CHECK(must(group.broadcast_obj(std::string(runtime.rank() == 2 ? "secret" : ""), Rank(2))) ==
          "secret");
    CHECK(must(group.all_gather_obj(runtime.rank())) == std::vector<int>{0, 1, 2, 3});
  });
}

}  // namespace
}  // namespace muster::test
