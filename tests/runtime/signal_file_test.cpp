#include "muster/signal_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/files.h"
#include "runtime/job.h"
#include "runtime/signals.h"

// Work in turn by signal files: threads are ranks, each with an environment and a SignalFolder.

namespace muster::test {
namespace {

using TestClock = std::chrono::steady_clock;

TEST_CASE("C3: the name of a node's signal file is the same on all of its ranks") {
  auto server = start_server();
  std::vector<std::vector<std::string>> names(4);
  run_ranks(4, [&](int rank) {
    auto variables = signal_variables(rank, 4, 2);
    variables["MUSTER_STORE"] = server.addresses().front();
    Runtime runtime{Environment(variables)};
    must(runtime.init(patient()));
    for (int count = 0; count < 2; ++count)
      names[static_cast<std::size_t>(rank)].push_back(must(node_signal_file_name(runtime.world())));
    must(runtime.shutdown());
  });
  for (int rank = 0; rank < 4; ++rank) {
    const std::string prefix = "._signal_file_node" + std::to_string(rank / 2) + "_";
    const std::string& name = names[static_cast<std::size_t>(rank)][0];
    CHECK(name.substr(0, prefix.size()) == prefix);
    CHECK(name.size() == prefix.size() + 6);
    CHECK(name != names[static_cast<std::size_t>(rank)][1]);
  }
  CHECK(names[0] == names[1]);
  CHECK(names[2] == names[3]);
  CHECK(names[0] != names[2]);
  RankGroup none;
  CHECK(must_fail(node_signal_file_name(none)).code == ErrorCode::not_initialized);
}

TEST_CASE("C4: only the rank that works first writes a signal file, and others wait for it there") {
  const TestFolder folders[2];
  run_ranks(2, [&](int rank) {
    const TestFolder& own = folders[rank];
    auto signals = open_signals(own, signal_variables(rank, 2));
    const auto result = local_rank_zero_first(
        signals,
        [&](Progress&) {
          CHECK(rank == 0);
          const auto names = own.names();
          REQUIRE(names.size() == 1);
          CHECK(names.begin()->substr(0, 20) == "._signal_file_node0_");
          CHECK(names.begin()->size() == 26);
        },
        patient_for(300ms));
    if (rank == 0) return must(result);
    // Its folder is another one.
    const Error error = must_fail(result);
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.detail.find("local rank 0 of node 0") != std::string::npos);
    CHECK(error.detail.find("MASTER_PORT=29400") != std::string::npos);
    CHECK(own.names().empty());
  });
  for (const TestFolder& folder : folders) CHECK(folder.names().empty());
}

TEST_CASE("C5: all ranks leave shortly after local rank 0 has ended, and leave nothing behind") {
  const TestFolder folder;
  std::atomic<int> waiting = 0;
  std::atomic<bool> has_led = false;
  std::mutex mutex;
  std::vector<TestClock::time_point> left;
  run_ranks(4, [&](int rank) {
    auto signals = open_signals(folder, signal_variables(rank, 4));
    CHECK(signals.job() == "MASTER_ADDR=10.0.0.1, MASTER_PORT=29400");
    if (rank != 0) ++waiting;
    const int value = must(local_rank_zero_first(signals, [&](Progress&) {
      CHECK(has_led == (rank != 0));
      if (rank == 0) await([&] { return waiting == 3; });
      has_led = true;
      return rank;
    }));
    CHECK(value == rank);
    const std::lock_guard lock(mutex);
    left.push_back(TestClock::now());
  });
  const auto [first, last] = std::minmax_element(left.begin(), left.end());
  CHECK(*last - *first < 2s);  // some 20 ms on a quiet machine
  CHECK(folder.names().empty());
}

TEST_CASE("calls by signal files follow each other, each with a file of its own") {
  const TestFolder folder;
  std::atomic<int> led = 0;
  run_ranks(3, [&](int rank) {
    auto signals = open_signals(folder, signal_variables(rank, 3));
    for (int call = 1; call <= 20; ++call) {
      must(local_rank_zero_first(signals, [&](Progress&) {
        if (rank == 0) ++led;
        CHECK(led >= call);
      }));
    }
    // Also with a SignalFolder for each call, whose file has the name of another one before.
    for (int call = 21; call <= 30; ++call) {
      auto own = open_signals(folder, signal_variables(rank, 3));
      must(local_rank_zero_first(own, [&](Progress&) {
        if (rank == 0) ++led;
        CHECK(led >= call);
      }));
    }
  });
  CHECK(folder.names().empty());
}

TEST_CASE("a failure of local rank 0 is thrown there, and told to others, who do not begin") {
  const TestFolder folder;
  std::atomic<int> runs = 0;
  run_ranks(3, [&](int rank) {
    auto signals = open_signals(folder, signal_variables(rank, 3));
    const auto work = [&](Progress&) {
      ++runs;
      throw std::runtime_error("no space");
    };
    if (rank == 0) {
      CHECK_THROWS_WITH_AS(static_cast<void>(local_rank_zero_first(signals, work)), "no space",
                           std::runtime_error);
    } else {
      const Error error = must_fail(local_rank_zero_first(signals, work));
      CHECK(error.code == ErrorCode::callback_failed);
      CHECK(error.detail == "no space");
      CHECK(error.operation == "local_rank_zero_first");
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
      REQUIRE(error.ranks.size() == 1);
      CHECK(error.ranks[0].process.pid == static_cast<std::uint32_t>(::getpid()));
    }
    must(local_rank_zero_first(signals, [](Progress&) {}));
  });
  CHECK(runs == 1);
  CHECK(folder.names().empty());
}

TEST_CASE("how a work has ended is told by its signal file also where no new file can be made") {
  const TestFolder folder;
  run_ranks(2, [&](int rank) {
    auto signals = open_signals(folder, signal_variables(rank, 2));
    const auto result = local_rank_zero_first(signals, [&](Progress&) -> Result<void> {
      // As on a full disk.
      std::filesystem::create_directory(folder.file(*folder.names().begin() + ".new"));
      Error error;
      error.code = ErrorCode::too_large;
      return error;
    });
    const Error error = must_fail(result);
    CHECK(error.code == (rank == 0 ? ErrorCode::too_large : ErrorCode::callback_failed));
  });
  CHECK(folder.names().size() == 1);
}

TEST_CASE("by signal files a work that tells of progress is awaited, and a silent one is not") {
  const TestFolder folder;
  std::atomic<bool> has_given_up = false;
  run_ranks(2, [&](int rank) {
    auto signals = open_signals(folder, signal_variables(rank, 2));
    const auto begun = TestClock::now();
    const auto leads_for = [&](Progress& progress, Duration time) {
      for (int step = 0; rank == 0 && TestClock::now() - begun < time; ++step) {
        progress("step " + std::to_string(step));
        std::this_thread::yield();
      }
    };
    must(local_rank_zero_first(
        signals, [&](Progress& progress) { leads_for(progress, 2500ms); }, patient_for(1s)));
    const auto silent = local_rank_zero_first(
        signals,
        [&](Progress& progress) {
          progress("shard 3 of 12");
          await([&] { return has_given_up.load(); });
        },
        patient_for(1s));
    if (rank != 0) {
      const Error error = must_fail(silent);
      CHECK(error.code == ErrorCode::timed_out);
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
      CHECK(error.detail.find("'shard 3 of 12'") != std::string::npos);
      has_given_up = true;
    }
    must(local_rank_zero_first(signals, [](Progress&) {}));
  });
  CHECK(folder.names().empty());
}

TEST_CASE("by signal files a rank that works may do so for longer than one may take to come") {
  const TestFolder folder;
  run_ranks(2, [&](int rank) {
    auto signals = open_signals(folder, signal_variables(rank, 2));
    TurnOptions options;
    options.arrival_max = 100ms;
    const auto begun = TestClock::now();
    must(local_rank_zero_first(
        signals,
        [&](Progress&) {
          if (rank == 0) await([&] { return TestClock::now() - begun > 3 * options.arrival_max; });
        },
        options));
  });
  CHECK(folder.names().empty());
}

TEST_CASE("by signal files there is a limit, whatever is told") {
  const TestFolder folder;
  std::atomic<bool> has_given_up = false;
  run_ranks(2, [&](int rank) {
    auto signals = open_signals(folder, signal_variables(rank, 2));
    TurnOptions options;
    options.limit = 300ms;
    // For the rank that gives up: the leader waits for it no longer than this.
    options.arrival_max = rank == 0 ? Duration(100ms) : Duration(20s);
    const auto result = local_rank_zero_first(
        signals,
        [&](Progress& progress) {
          await([&] {
            progress("still there");
            return has_given_up.load();
          });
        },
        options);
    if (rank == 0) return must(result);
    CHECK(must_fail(result).code == ErrorCode::timed_out);
    has_given_up = true;
  });
  CHECK(folder.names().empty());
}

TEST_CASE("two nodes that share a folder have a signal file each") {
  const TestFolder folder;
  std::atomic<int> leading = 0;
  std::atomic<int> counted = 0;
  std::array<std::atomic<bool>, 2> has_led{};
  run_ranks(4, [&](int rank) {
    auto signals = open_signals(folder, signal_variables(rank, 4, 2));
    const auto node = static_cast<std::size_t>(rank / 2);
    must(local_rank_zero_first(signals, [&](Progress&) {
      CHECK(has_led[node] == (rank % 2 != 0));
      if (rank % 2 == 0) {
        ++leading;
        await([&] { return leading == 2; });
        CHECK(folder.names().size() == 2);
        ++counted;
        await([&] { return counted == 2; });
      }
      has_led[node] = true;
    }));
  });
  CHECK(folder.names().empty());
}

TEST_CASE("where all ranks share files, rank 0 works first by one signal file for all nodes") {
  const TestFolder folder;
  std::atomic<bool> has_led = false;
  run_ranks(4, [&](int rank) {
    auto variables = signal_variables(rank, 4, 2);
    variables["OLMO_SHARED_FS"] = "1";
    auto signals = open_signals(folder, variables);
    must(fs_local_rank_zero_first(signals, [&](Progress&) {
      CHECK(has_led == (rank != 0));
      has_led = true;
    }));
  });
  CHECK(folder.names().empty());
}

TEST_CASE("starts and jobs that share a folder at the same time have signal files of their own") {
  const TestFolder folder;
  std::array<std::atomic<bool>, 3> has_led{};
  std::atomic<int> leading = 0;
  std::atomic<int> counted = 0;
  run_ranks(6, [&](int thread) {
    const auto job = static_cast<std::size_t>(thread / 2);
    auto variables = signal_variables(thread % 2, 2);
    variables["TORCHELASTIC_RUN_ID"] = job == 2 ? "other" : "exp7";
    variables["TORCHELASTIC_RESTART_COUNT"] = job == 1 ? "1" : "0";
    auto signals = open_signals(folder, variables);
    if (job == 1) CHECK(signals.job() == "TORCHELASTIC_RUN_ID=exp7, TORCHELASTIC_RESTART_COUNT=1");
    must(local_rank_zero_first(signals, [&](Progress&) {
      if (thread % 2 == 0) {
        ++leading;
        await([&] { return leading == 3; });
        CHECK(folder.names().size() == 3);
        ++counted;
        await([&] { return counted == 3; });
        has_led[job] = true;
      }
      CHECK(has_led[job]);
    }));
  });
  CHECK(folder.names().empty());
}

TEST_CASE("a rank that comes when local rank 0 has long ended reads how that was") {
  const TestFolder folder;
  std::atomic<bool> is_over = false;
  std::atomic<bool> has_late = false;
  std::string logged;
  run_ranks(3, [&](int rank) {
    SignalFolderOptions options;
    if (rank == 0) options.logger = [&](LogLevel, std::string_view line) { logged = line; };
    auto signals = open_signals(folder, signal_variables(rank, 3), options);
    if (rank == 2) await([&] { return is_over.load(); });
    must(local_rank_zero_first(
        signals, [](Progress&) {}, patient_for(200ms)));
    if (rank == 2) has_late = true;
    if (rank != 0) return;
    is_over = true;
    CHECK(folder.names().size() == 1);
    await([&] { return has_late.load(); });
  });
  CHECK(logged.find("have not come: 2") != std::string::npos);
  CHECK(folder.names().empty());
}

TEST_CASE("a rank that is missing is named, and not local rank 0, which has waited for it") {
  const TestFolder folder;
  std::atomic<TestClock::duration> waiting_since{TestClock::duration::max()};
  std::atomic<bool> is_over = false;
  std::string logged;
  const auto nothing = [](Progress&) {};
  run_ranks(2, [&](int index) {
    const int rank = 2 * index;  // rank 1 is not there
    SignalFolderOptions options;
    if (rank == 2) options.logger = [&](LogLevel, std::string_view line) { logged = line; };
    auto signals = open_signals(folder, signal_variables(rank, 3), options);
    if (rank == 0) {
      must(local_rank_zero_first(signals, nothing, patient_for(20ms)));
      // It comes when the other one would have given it up, if it did not wait for rank 1, too.
      await([&] { return TestClock::now().time_since_epoch() - 1200ms > waiting_since.load(); });
      must(local_rank_zero_first(signals, nothing, patient_for(20ms)));
      await([&] { return is_over.load(); });
      return;
    }
    must(local_rank_zero_first(signals, nothing, patient_for(1s)));
    waiting_since = TestClock::now().time_since_epoch();
    must(local_rank_zero_first(signals, nothing, patient_for(1s)));
    CHECK(logged.find("local ranks 1 have not read") != std::string::npos);
    const Error error = must_fail(local_rank_zero_first(signals, nothing, patient_for(50ms)));
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    is_over = true;
  });
}

TEST_CASE(
    "the signal file of a rank that never comes is removed by the next call behind its limit") {
  const TestFolder folder;
  auto signals = open_signals(folder, signal_variables(0, 2));
  TurnOptions options = patient_for(50ms);
  options.limit = 60ms;
  const auto begun = TestClock::now();
  must(local_rank_zero_first(
      signals, [](Progress&) {}, options));
  const auto names = folder.names();
  CHECK(names.size() == 1);
  await([&] { return TestClock::now() - begun > options.limit; });
  must(local_rank_zero_first(
      signals, [&](Progress&) { CHECK(folder.names().count(*names.begin()) == 0); }, options));
  { const SignalFolder ends = std::move(signals); }
  CHECK(folder.names().empty());
}

TEST_CASE("a SignalFolder says which variables it misses") {
  const TestFolder folder;
  const auto refused = [&](const std::string& without) {
    auto variables = signal_variables(1, 2);
    variables.erase(without);
    if (without == "NODE_RANK") variables.erase("RANK");
    return must_fail(SignalFolder::open(folder.path(), Environment(variables)));
  };
  for (const char* const name : {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_PORT"}) {
    CAPTURE(name);
    const Error error = refused(name);
    CHECK(error.code == ErrorCode::environment);
    CHECK(error.detail.find(name) != std::string::npos);
  }
  auto variables = signal_variables(1, 2);
  variables["TORCHELASTIC_RUN_ID"] = "none";
  CHECK(open_signals(folder, variables).job() == "MASTER_ADDR=10.0.0.1, MASTER_PORT=29400");
  variables["SLURM_JOB_ID"] = "4711";
  variables["SLURM_STEP_ID"] = "2";
  variables["SLURM_RESTART_COUNT"] = "1";
  CHECK(open_signals(folder, variables).job() ==
        "SLURM_JOB_ID=4711, SLURM_STEP_ID=2, SLURM_RESTART_COUNT=1");
  SignalFolderOptions options;
  options.job = "exp7";
  options.attempt = "3";
  CHECK(open_signals(folder, variables, options).job() == "job exp7, attempt 3");
  write_file(folder.file("file"), "");
  CHECK(must_fail(SignalFolder::open(folder.file("file"), Environment(variables))).code ==
        ErrorCode::invalid_argument);
  must(SignalFolder::open(folder.file("new/folder"), Environment(variables)));
  CHECK(std::filesystem::is_directory(folder.file("new/folder")));
}

TEST_CASE("a single process needs no signal files") {
  const TestFolder folder;
  auto signals = must(SignalFolder::open(folder.path(), Environment()));
  const int value = must(local_rank_zero_first(signals, [&](Progress& progress) {
    progress("unheard");
    CHECK(folder.names().empty());
    return 7;
  }));
  CHECK(value == 7);
  CHECK(must_fail(local_rank_zero_first(
                      signals, [](Progress&) {}, patient_for(0s)))
            .code == ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace muster::test
