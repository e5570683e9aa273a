#include "muster/turns.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "muster/codec_cereal.h"
#include "runtime/job.h"

// Work in turn: who works when, what others learn of it, and how long they wait.

namespace muster::test {
namespace {

TurnOptions silence(Duration silence_max) {
  TurnOptions options;
  options.silence_max = silence_max;
  return options;
}

TEST_CASE("C1: a turn without a world says that the runtime is not initialized") {
  Runtime runtime{Environment({{"RANK", "0"}, {"WORLD_SIZE", "2"}})};
  bool has_run = false;
  const auto work = [&](Progress&) { has_run = true; };
  CHECK(must_fail(local_rank_zero_first(runtime.world(), work)).code == ErrorCode::not_initialized);
  CHECK(must_fail(on_rank_zero(runtime.world(), work)).code == ErrorCode::not_initialized);
  CHECK(must_fail(n_at_a_time(runtime.world(), 1, work)).code == ErrorCode::not_initialized);
  CHECK_FALSE(has_run);
}

TEST_CASE("all ranks get what rank 0's work gives, and only that runs") {
  Job job(3);
  std::atomic<int> runs = 0;
  job.run([&](Runtime& runtime) {
    const auto value = must(on_rank_zero(runtime.world(), [&](Progress&) {
      ++runs;
      return std::string("of rank ") + std::to_string(runtime.rank());
    }));
    CHECK(value == "of rank 0");
    must(on_rank_zero(runtime.world(), [&](Progress&) { ++runs; }));
    const auto number =
        must(on_rank_zero(runtime.world(), [&](Progress&) { return Result<int>(7); }));
    CHECK(number == 7);
    must(runtime.world().group()->barrier());
  });
  CHECK(runs == 2);
}

TEST_CASE("what rank 0's work throws is thrown there, and others are told its text") {
  Job job(3);
  job.run([&](Runtime& runtime) {
    const auto work = [](Progress&) -> int { throw std::runtime_error("no such file"); };
    if (runtime.rank() == 0) {
      CHECK_THROWS_WITH_AS(static_cast<void>(on_rank_zero(runtime.world(), work)), "no such file",
                           std::runtime_error);
    } else {
      const Error error = must_fail(on_rank_zero(runtime.world(), work));
      CHECK(error.code == ErrorCode::callback_failed);
      CHECK(error.detail == "no such file");
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
    }
    CHECK(must(on_rank_zero(runtime.world(), [](Progress&) { return 1; })) == 1);
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("an error that rank 0's work gives is its own there, and told to others") {
  Job job(2);
  job.run([&](Runtime& runtime) {
    const auto work = [](Progress&) {
      Error error;
      error.code = ErrorCode::too_large;
      return Result<int>(error);
    };
    const Error error = must_fail(on_rank_zero(runtime.world(), work));
    CHECK(error.code == (runtime.rank() == 0 ? ErrorCode::too_large : ErrorCode::callback_failed));
    must(runtime.world().group()->barrier());
  });
}

/// Who is at work now, and who has been.
class Workshop {
 public:
  void work(int rank) {
    {
      const std::lock_guard lock(mutex_);
      order_.push_back(rank);
      at_once_ = std::max(at_once_, ++inside_);
    }
    std::this_thread::yield();
    const std::lock_guard lock(mutex_);
    --inside_;
  }
  int at_once() const { return at_once_; }
  std::vector<int> order() const { return order_; }

 private:
  std::mutex mutex_;
  int inside_ = 0;
  int at_once_ = 0;
  std::vector<int> order_;
};

TEST_CASE("O2, O3: never more than n ranks work, and each does once") {
  struct Case {
    int world_size;
    int count;
  };
  for (const Case& one : {Case{1, 2}, Case{8, 3}, Case{2, 8}, Case{6, 1}, Case{4, 0}}) {
    CAPTURE(one.world_size);
    Workshop workshop;
    Job job(one.world_size);
    job.run([&](Runtime& runtime) {
      must(n_at_a_time(runtime.world(), one.count,
                       [&](Progress&) { workshop.work(runtime.rank()); }));
      must(runtime.world().group()->barrier());
    });
    const int count = std::max(one.count, 1);  // 0: one for each node, which is one here
    CHECK(workshop.at_once() <= count);
    auto order = workshop.order();
    if (count == 1) CHECK(std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    CHECK(order.size() == static_cast<std::size_t>(one.world_size));
    CHECK(std::adjacent_find(order.begin(), order.end()) == order.end());
  }
}

TEST_CASE("O3: a work that throws hangs nobody; all have their turn, and learn of it") {
  Job job(5);
  std::atomic<int> runs = 0;
  job.run([&](Runtime& runtime) {
    const auto work = [&](Progress&) {
      ++runs;
      if (runtime.rank() == 1) throw std::runtime_error("full disk");
    };
    if (runtime.rank() == 1) {
      CHECK_THROWS_AS(static_cast<void>(n_at_a_time(runtime.world(), 2, work)), std::runtime_error);
    } else {
      const Error error = must_fail(n_at_a_time(runtime.world(), 2, work));
      CHECK(error.code == ErrorCode::callback_failed);
      CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
      CHECK(error.detail == "rank 1: full disk");
    }
    must(runtime.world().group()->barrier());
  });
  CHECK(runs == 5);
}

TEST_CASE("all ranks whose work has failed are named, as ranges") {
  Job job(4);
  job.run([&](Runtime& runtime) {
    const auto work = [&](Progress&) {
      if (runtime.rank() == 0) return Result<int>(1);
      Error error;
      error.code = ErrorCode::too_large;
      return runtime.rank() == 3 ? Result<int>(3) : Result<int>(error);
    };
    const Error error = must_fail(n_at_a_time(runtime.world(), 2, work));
    const bool is_own = runtime.rank() == 1 || runtime.rank() == 2;
    CHECK(error.code == (is_own ? ErrorCode::too_large : ErrorCode::callback_failed));
    if (!is_own) CHECK(error.rank_ranges == std::vector<RankRange>{{1, 2}});
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("as many ranks at a time as there are, or more, all begin at once") {
  for (const int world_size : {1, 2, 3, 4}) {
    CAPTURE(world_size);
    constexpr int most = std::numeric_limits<int>::max();
    Job job(world_size);
    std::atomic<int> inside = 0;
    job.run([&](Runtime& runtime) {
      for (const int count : {world_size, world_size + 1, most / 2, most - 1, most}) {
        must(runtime.world().group()->barrier());
        inside = 0;
        must(runtime.world().group()->barrier());
        must(n_at_a_time(runtime.world(), count, [&](Progress&) {
          ++inside;
          await([&] { return inside == world_size; });
        }));
      }
    });
  }
}

TEST_CASE("the longest times there are do not overflow") {
  Job job(2);
  RuntimeOptions options = patient();
  options.group.timeout = Duration::max();
  job.run(
      [](Runtime& runtime) {
        TurnOptions turn;
        turn.silence_max = turn.limit = Duration::max();
        CHECK(must(on_rank_zero(
                  runtime.world(), [](Progress&) { return 7; }, turn)) == 7);
        must(runtime.shutdown(Duration::max()));
      },
      options);
}

TEST_CASE("a negative number of ranks at a time is refused") {
  Job job(2);
  job.run([&](Runtime& runtime) {
    const auto work = [](Progress&) {};
    CHECK(must_fail(n_at_a_time(runtime.world(), -1, work)).code == ErrorCode::invalid_argument);
    CHECK(must_fail(on_rank_zero(runtime.world(), work, silence(0s))).code ==
          ErrorCode::invalid_argument);
    must(runtime.world().group()->barrier());
  });
}

/// Two nodes of two ranks.
Environment environment_of_node(int rank, const std::string& store) {
  auto variables = variables_of(rank, 4, store);
  variables["NODE_RANK"] = std::to_string(rank / 2);
  variables["LOCAL_RANK"] = std::to_string(rank % 2);
  variables["LOCAL_WORLD_SIZE"] = "2";
  return Environment(variables);
}

TEST_CASE("C2: local rank 0 of each node works before the others there") {
  auto server = start_server();
  std::array<std::atomic<bool>, 2> has_led{};
  run_ranks(4, [&](int rank) {
    Runtime runtime(environment_of_node(rank, server.addresses().front()));
    must(runtime.init(patient()));
    const auto node = static_cast<std::size_t>(runtime.node_rank());
    must(local_rank_zero_first(runtime.world(), [&](Progress&) {
      CHECK(has_led[node] == (runtime.local_rank() != 0));
      has_led[node] = true;
    }));
    must(runtime.shutdown());
  });
}

TEST_CASE("where all nodes have one file system, one rank works before all others") {
  auto server = start_server();
  std::atomic<bool> has_led = false;
  run_ranks(4, [&](int rank) {
    auto variables = variables_of(rank, 4, server.addresses().front());
    variables["NODE_RANK"] = std::to_string(rank / 2);
    variables["LOCAL_RANK"] = std::to_string(rank % 2);
    variables["LOCAL_WORLD_SIZE"] = "2";
    variables["OLMO_SHARED_FS"] = "1";
    Runtime runtime{Environment(variables)};
    must(runtime.init(patient()));
    must(fs_local_rank_zero_first(runtime.world(), [&](Progress&) {
      CHECK(has_led == (rank != 0));
      has_led = true;
    }));
    must(runtime.shutdown());
  });
}

TEST_CASE("if the first work on a node fails, the others there do not begin") {
  Job job(3);
  std::atomic<int> runs = 0;
  job.run([&](Runtime& runtime) {
    const auto work = [&](Progress&) {
      ++runs;
      throw std::runtime_error("no space");
    };
    if (runtime.rank() == 0) {
      CHECK_THROWS(static_cast<void>(local_rank_zero_first(runtime.world(), work)));
    } else {
      CHECK(must_fail(local_rank_zero_first(runtime.world(), work)).code ==
            ErrorCode::callback_failed);
    }
    must(runtime.world().group()->barrier());
  });
  CHECK(runs == 1);
}

TEST_CASE("who works and tells of progress is awaited; who tells nothing is not, although alive") {
  Job job(2);
  std::atomic<bool> has_given_up = false;
  job.run([&](Runtime& runtime) {
    const auto begun = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::steady_clock::now() - begun; };
    // Longer than silence is endured.
    const auto value = must(on_rank_zero(
        runtime.world(),
        [&](Progress& progress) {
          for (int step = 0; passed() < 2500ms; ++step) {
            progress("step " + std::to_string(step));
            std::this_thread::yield();
          }
          return 1;
        },
        silence(1s)));
    CHECK(value == 1);
    const auto silent = on_rank_zero(
        runtime.world(),
        [&](Progress& progress) {
          progress("shard 3 of 12");
          await([&] { return has_given_up.load(); });
        },
        silence(1s));
    if (runtime.rank() == 1) {
      const Error error = must_fail(silent);
      CHECK(error.code == ErrorCode::timed_out);
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
      CHECK(error.detail.find("'shard 3 of 12'") != std::string::npos);
      has_given_up = true;
    }
    // What the turn that was given up has left behind is passed over.
    CHECK(must(on_rank_zero(runtime.world(), [](Progress&) { return 2; })) == 2);
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("progress is passed on by those who wait themselves") {
  Job job(3);
  job.run([&](Runtime& runtime) {
    const auto begun = std::chrono::steady_clock::now();
    // Rank 2 waits for rank 1, which waits for rank 0.
    must(n_at_a_time(
        runtime.world(), 1,
        [&](Progress& progress) {
          if (runtime.rank() != 0) return;
          while (std::chrono::steady_clock::now() - begun < 3s) {
            progress("loading");
            std::this_thread::yield();
          }
        },
        silence(1s)));
    must(runtime.world().group()->barrier());
  });
}

TEST_CASE("there is a limit, whatever is told") {
  Job job(2);
  std::atomic<bool> has_given_up = false;
  job.run([&](Runtime& runtime) {
    TurnOptions options;
    options.limit = 300ms;
    const auto result = on_rank_zero(
        runtime.world(),
        [&](Progress& progress) {
          await([&] {
            progress("still there");
            return has_given_up.load();
          });
        },
        options);
    if (runtime.rank() == 1) {
      CHECK(must_fail(result).code == ErrorCode::timed_out);
      has_given_up = true;
    }
    must(runtime.world().group()->barrier());
  });
}

}  // namespace
}  // namespace muster::test
