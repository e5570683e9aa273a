#include "muster/shared.h"

#include <poll.h>
#include <sys/inotify.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/file_handle.h"
#include "runtime/job.h"
#include "runtime/shared_support.h"

// What one rank gets of the others: in which order, through memory and through a folder, and what
// all ranks hear when one of them fails.

namespace muster::test {
namespace {

GatherOptions in_order(std::vector<int> ranks, std::string folder = {}) {
  GatherOptions options;
  options.ranks = std::move(ranks);
  options.folder = std::move(folder);
  return options;
}

/// Four numbers that tell the rank.
std::vector<float> numbers_of(int rank) {
  std::vector<float> numbers(4);
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(10 * rank));
  return numbers;
}

std::vector<float> floats_in(const TensorView& tensor) {
  std::vector<float> values(tensor.element_count());
  if (!values.empty()) std::memcpy(values.data(), tensor.data, tensor.byte_count());
  return values;
}

/// Nothing of a scope that is over is left.
void check_nothing_left() {
  CHECK(own_open_files() == 0);
  CHECK(own_mappings() == 0);
}

TEST_CASE("a gathering without a world says that the runtime is not initialized") {
  Runtime runtime{Environment({{"RANK", "0"}, {"WORLD_SIZE", "2"}})};
  const auto numbers = numbers_of(0);
  const auto body = [](auto) { FAIL("it has run"); };
  CHECK(must_fail(with_gathered_tensors(runtime.world(), tensor_of(numbers), body)).code ==
        ErrorCode::not_initialized);
  CHECK(must_fail(with_gathered_states(runtime.world(), std::nullopt, body)).code ==
        ErrorCode::not_initialized);
}

TEST_CASE("M3: the first rank gets all in order, the others nothing, and no name is left") {
  const OwnFolder folder;
  Job job(4);
  job.run([&](Runtime& runtime) {
    const auto numbers = numbers_of(runtime.rank());
    for (const std::string& place : {std::string(), folder.path()}) {
      const auto count = must(with_gathered_tensors(
          runtime.world(), tensor_of(numbers),
          [&](Span<const TensorView> tensors) {
            CHECK(leftovers_in("/dev/shm").empty());
            if (!place.empty()) CHECK(entries_of(place).empty());
            if (runtime.rank() != 2) return tensors.size();
            const std::vector<int> order = {2, 0, 3, 1};
            REQUIRE(tensors.size() == 4);
            for (std::size_t index = 0; index < 4; ++index) {
              CHECK(floats_in(tensors[index]) == numbers_of(order[index]));
              CHECK(tensors[index].is_read_only);
            }
            CHECK(tensors[0].data == numbers.data());
            return tensors.size();
          },
          in_order({2, 0, 3, 1}, place)));
      CHECK(count == (runtime.rank() == 2 ? 4 : 0));
    }
    must(runtime.world().group()->barrier());
    if (runtime.rank() == 0) check_nothing_left();
    must(runtime.world().group()->barrier());
  });
  CHECK(leftovers_in("/dev/shm").empty());
}

TEST_CASE("ranks that are not named take part without giving") {
  Job job(3);
  job.run([&](Runtime& runtime) {
    auto numbers = numbers_of(runtime.rank());
    TensorView tensor = tensor_of(numbers);
    // What it does not give may be anything.
    if (runtime.rank() == 0) tensor.device = {DeviceType::cuda, 0};
    must(with_gathered_tensors(
        runtime.world(), tensor,
        [&](Span<const TensorView> tensors) {
          CHECK(tensors.size() == (runtime.rank() == 1 ? 2 : 0));
          if (runtime.rank() == 1) CHECK(floats_in(tensors[1]) == numbers_of(2));
        },
        in_order({1, 2})));
    must(with_gathered_tensors(
        runtime.world(), tensor_of(numbers),
        [&](Span<const TensorView> tensors) {
          CHECK(tensors.size() == (runtime.rank() == 2 ? 1 : 0));
        },
        in_order({2})));
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("M3: a body that throws hangs nobody, is told to all, and leaves nothing") {
  Job job(3);
  job.run([&](Runtime& runtime) {
    const auto numbers = numbers_of(runtime.rank());
    const auto body = [&](Span<const TensorView>) -> int {
      if (runtime.rank() == 1) throw std::runtime_error("cannot merge");
      return 7;
    };
    const auto gather = [&] {
      return with_gathered_tensors(runtime.world(), tensor_of(numbers), body, in_order({1, 0, 2}));
    };
    if (runtime.rank() == 1) {
      CHECK_THROWS_WITH_AS(static_cast<void>(gather()), "cannot merge", std::runtime_error);
    } else {
      const Error error = must_fail(gather());
      CHECK(error.code == ErrorCode::callback_failed);
      CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
      CHECK(error.detail.find("cannot merge") != std::string::npos);
      CHECK(error.operation == "with_gathered_tensors");
      CHECK(error.group == "world");
    }
    must(runtime.world().group()->barrier());
    if (runtime.rank() == 0) check_nothing_left();
    must(runtime.world().group()->barrier());
  });
  CHECK(leftovers_in("/dev/shm").empty());
}

TEST_CASE("an error that a body gives is its own there, and told to others") {
  Job job(3);
  job.run([&](Runtime& runtime) {
    const auto result = with_gathered_states(runtime.world(), SharedStateView{}, [&](auto) {
      Error error;
      error.code = ErrorCode::too_large;
      return runtime.rank() == 0 ? Result<int>(1) : Result<int>(error);
    });
    const Error error = must_fail(result);
    CHECK(error.code == (runtime.rank() == 0 ? ErrorCode::callback_failed : ErrorCode::too_large));
    if (runtime.rank() == 0) CHECK(error.rank_ranges == std::vector<RankRange>{{1, 2}});
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("M4: two jobs of the same ranks on one host do not meet") {
  Job jobs[2] = {Job(3), Job(3)};
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      jobs[number].run([&](Runtime& runtime) {
        for (int round = 0; round < 50; ++round) {
          const auto numbers = numbers_of(100 * number + runtime.rank());
          must(with_gathered_tensors(runtime.world(), tensor_of(numbers),
                                     [&](Span<const TensorView> tensors) {
                                       for (std::size_t rank = 0; rank < tensors.size(); ++rank)
                                         CHECK(floats_in(tensors[rank]) ==
                                               numbers_of(100 * number + static_cast<int>(rank)));
                                     }));
        }
        must(runtime.world().group()->barrier());
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("M5: tensors that are not equal are an error on all ranks, unless that is allowed") {
  Job job(4);
  job.run([&](Runtime& runtime) {
    std::vector<float> numbers(runtime.rank() == 3 ? 5 : 4);
    std::vector<double> doubles(4);
    const TensorView tensor = runtime.rank() == 1 ? tensor_of(doubles) : tensor_of(numbers);
    bool has_run = false;
    const auto body = [&](Span<const TensorView>) { has_run = true; };
    GatherOptions options = in_order({2, 3, 1, 0});
    const Error error = must_fail(with_gathered_tensors(runtime.world(), tensor, body, options));
    CHECK(error.code == ErrorCode::mismatch);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}, {3, 3}});
    CHECK_FALSE(has_run);
    options.equal_tensors = false;
    must(with_gathered_tensors(
        runtime.world(), tensor,
        [&](Span<const TensorView> tensors) {
          if (runtime.rank() != 2) return;
          REQUIRE(tensors.size() == 4);
          CHECK(tensors[1].shape == std::vector<std::int64_t>{5});
          CHECK(tensors[2].dtype == dtype::float64);
        },
        options));
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("what one rank refuses is an error on all, and names it") {
  Job job(3);
  job.run([&](Runtime& runtime) {
    auto numbers = numbers_of(runtime.rank());
    TensorView tensor = tensor_of(numbers);
    if (runtime.rank() == 1) tensor.device = {DeviceType::cuda, 0};
    const auto body = [](auto) { FAIL("it has run"); };
    Error error = must_fail(with_gathered_tensors(runtime.world(), tensor, body));
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    // Options that differ.
    error =
        must_fail(with_gathered_tensors(runtime.world(), tensor_of(numbers), body,
                                        runtime.rank() == 2 ? in_order({1, 0}) : in_order({0, 1})));
    CHECK(error.code == ErrorCode::mismatch);
    CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
    // Ranks that there are not, or are twice.
    for (const std::vector<int>& ranks : {std::vector{0, 3}, std::vector{-1}, std::vector{1, 1}}) {
      error = must_fail(
          with_gathered_tensors(runtime.world(), tensor_of(numbers), body, in_order(ranks)));
      CHECK(error.code == ErrorCode::invalid_argument);
    }
    // Another function.
    error = must_fail(runtime.rank() == 0
                          ? with_gathered_tensors(runtime.world(), tensor_of(numbers), body)
                          : with_gathered_states(runtime.world(), std::nullopt, body));
    CHECK(error.code == ErrorCode::mismatch);
    // A folder that cannot be.
    error = must_fail(with_gathered_states(runtime.world(), SharedStateView{}, body,
                                           in_order({0, 2}, "/proc/none/here")));
    CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
    // And the group goes on.
    CHECK(must(with_gathered_tensors(runtime.world(), tensor_of(numbers), [](auto tensors) {
            return tensors.size();
          })) == (runtime.rank() == 0 ? 3 : 0));
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("what the first rank cannot take is an error on all, and names whose it is") {
  const OwnFolder folder;
  Job job(3);
  job.run([&](Runtime& runtime) {
    const auto numbers = numbers_of(runtime.rank());
    // Where the first rank looks nothing can be.
    const std::string place = runtime.rank() == 0 ? "/dev/null/none" : folder.path();
    const Error error = must_fail(with_gathered_tensors(
        runtime.world(), tensor_of(numbers), [](auto) { FAIL("it has run"); },
        in_order({0, 2}, place)));
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
    must(runtime.world().group()->barrier());
  });
  CHECK(entries_of(folder.path()).empty());
}

TEST_CASE("a folder that is not shared is named as the cause, also within a short timeout") {
  const OwnFolder of_first;
  const OwnFolder of_other;
  Job job(2);
  job.run([&](Runtime& runtime) {
    const auto numbers = numbers_of(runtime.rank());
    GatherOptions options = in_order({}, (runtime.rank() == 0 ? of_first : of_other).path());
    options.timeout = std::chrono::milliseconds(2500);
    const Error error = must_fail(with_gathered_tensors(
        runtime.world(), tensor_of(numbers), [](auto) { FAIL("it has run"); }, options));
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.detail.find("a folder that they share") != std::string::npos);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    must(runtime.world().group()->barrier());
  });
  CHECK(entries_of(of_other.path()).empty());
}

/// Waits until a process has listed the folder.
class Listing {
 public:
  explicit Listing(const std::string& folder) : watch_(::inotify_init1(IN_CLOEXEC)) {
    REQUIRE(::inotify_add_watch(watch_.get(), folder.c_str(), IN_OPEN | IN_ONLYDIR) >= 0);
  }
  bool is_awaited() const {
    pollfd ready{watch_.get(), POLLIN, 0};
    return ::poll(&ready, 1, 20'000) == 1;
  }

 private:
  const base::FileHandle watch_;
};

TEST_CASE("a file that the folder shows late is awaited, also within the default timeout") {
  const OwnFolder of_first;
  const OwnFolder of_other;
  Job job(2);
  const Listing listing(of_first.path());
  const std::jthread network([&] {
    if (!listing.is_awaited()) return;
    for (const std::string& name : entries_of(of_other.path()))
      std::filesystem::create_hard_link(of_other.path() + "/" + name, of_first.path() + "/" + name);
  });
  job.run([&](Runtime& runtime) {
    const auto numbers = numbers_of(runtime.rank());
    must(with_gathered_tensors(
        runtime.world(), tensor_of(numbers), [](auto) {},
        in_order({}, (runtime.rank() == 0 ? of_first : of_other).path())));
  });
}

TEST_CASE("strided tensors arrive contiguous; of no dimension, and of no elements, as they are") {
  const OwnFolder folder;
  Job job(2);
  job.run([&](Runtime& runtime) {
    std::vector<float> numbers(6);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    TensorView transposed = tensor_of(Span<float>(numbers), {3, 2});
    transposed.strides = {1, 3};
    const TensorView scalar = tensor_of(Span<const float>(&numbers[5], 1), {});
    const TensorView none = tensor_of(Span<const float>(), {0, 3});
    for (const std::string& place : {std::string(), folder.path()}) {
      for (const TensorView& tensor : {transposed, scalar, none}) {
        must(with_gathered_tensors(
            runtime.world(), tensor,
            [&](Span<const TensorView> tensors) {
              if (runtime.rank() != 0) return;
              REQUIRE(tensors.size() == 2);
              CHECK(tensors[0].strides == tensor.strides);
              CHECK(tensors[1].is_contiguous());
              CHECK(tensors[1].shape == tensor.shape);
              const auto expected = tensor.shape.size() == 0 ? std::vector<float>{5}
                                    : tensor.shape[0] == 0   ? std::vector<float>()
                                                             : std::vector<float>{0, 3, 1, 4, 2, 5};
              CHECK(floats_in(tensors[1]) == expected);
            },
            in_order({}, place)));
      }
    }
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("M7: an empty place stays empty, and memory and folder give equal results") {
  const OwnFolder folder;
  Job job(4);
  job.run([&](Runtime& runtime) {
    const auto numbers = numbers_of(runtime.rank());
    const std::string config = "{\"rank\": " + std::to_string(runtime.rank()) + "}";
    std::optional<SharedStateView> state;
    if (runtime.rank() != 1)
      state = SharedStateView{config, {{"w", tensor_of(numbers)}, {"b", tensor_of(numbers)}}};
    std::vector<std::string> seen;
    for (const std::string& place : {std::string(), folder.path()}) {
      seen.push_back(must(with_gathered_states(
          runtime.world(), state,
          [&](Span<const std::optional<SharedStateView>> states) {
            std::string all;
            for (const auto& one : states) {
              if (!one) all += "none";
              if (!one) continue;
              all += one->config;
              for (const auto& named : one->tensors)
                all += named.name + std::to_string(floats_in(named.tensor)[1]);
            }
            if (runtime.rank() == 3) {
              REQUIRE(states.size() == 4);
              CHECK_FALSE(states[1].has_value());
              CHECK(states[0]->config == config);
              CHECK(states[2]->config == "{\"rank\": 0}");
            }
            return all;
          },
          in_order({3, 1, 0, 2}, place))));
    }
    CHECK(seen[0] == seen[1]);
    CHECK(seen[0].empty() == (runtime.rank() != 3));
    must(runtime.world().group()->barrier());
  });
  CHECK(entries_of(folder.path()).empty());
}

TEST_CASE("M7: the first rank's place may be the empty one") {
  Job job(2);
  job.run([&](Runtime& runtime) {
    std::optional<SharedStateView> state;
    if (runtime.rank() == 1) state = SharedStateView{"config", {}};
    must(with_gathered_states(runtime.world(), state, [&](const auto& states) {
      if (runtime.rank() != 0) return;
      REQUIRE(states.size() == 2);
      CHECK_FALSE(states[0].has_value());
      CHECK(states[1]->config == "config");
    }));
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("a rank that never comes is named, and the others' wait ends in time") {
  Job job(3);
  std::atomic<int> waiting = 2;
  job.run([&](Runtime& runtime) {
    if (runtime.rank() == 1) {
      await([&] { return waiting == 0; });
      return;
    }
    const auto numbers = numbers_of(0);
    GatherOptions options;
    options.timeout = 300ms;
    const Error error = must_fail(with_gathered_tensors(
        runtime.world(), tensor_of(numbers), [](auto) {}, options));
    CHECK((error.code == ErrorCode::timed_out || error.code == ErrorCode::cancelled));
    CHECK(error.operation == "with_gathered_tensors");
    --waiting;
  });
  CHECK(leftovers_in("/dev/shm").empty());
}

}  // namespace
}  // namespace muster::test
