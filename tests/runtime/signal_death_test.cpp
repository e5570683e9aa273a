#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/files.h"
#include "runtime/signals.h"
#include "support/ranks.h"

// Ranks that work first and die, and the signal files that they leave.

namespace muster::test {
namespace {

/// Waits until somebody has looked at the file.
void await_look(const std::string& path) {
  const int watch = ::inotify_init1(IN_CLOEXEC);
  REQUIRE(::inotify_add_watch(watch, path.c_str(), IN_CLOSE_NOWRITE) >= 0);
  ::pollfd look{watch, POLLIN, 0};
  CHECK(::poll(&look, 1, 20'000) == 1);
  ::close(watch);
}

TEST_CASE("the death of local rank 0 ends the others' wait at once") {
  const TestFolder folder;
  auto leader = start_file_process({"leads", folder.path()}, signal_variables(0, 2));
  CHECK(leader->read_line() == "works");
  const auto pid = static_cast<std::uint32_t>(leader->pid());
  const std::string path = folder.file(*folder.names().begin());
  std::thread killer([&] {
    await_look(path);
    leader->send_signal(SIGKILL);
  });
  auto signals = open_signals(folder, signal_variables(1, 2));
  const Error error = must_fail(local_rank_zero_first(signals, [](Progress&) {}));
  killer.join();
  CHECK(error.code == ErrorCode::rank_lost);
  CHECK(error.cause == LossCause::closed);
  CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
  CHECK(error.ranks.at(0).process.pid == pid);
}

TEST_CASE("a local rank 0 that has died before is lost, too, where its job's name is surely new") {
  const TestFolder folder;
  const auto variables = [](int rank) {
    auto of_step = signal_variables(rank, 2);
    of_step["SLURM_JOB_ID"] = "4711";
    of_step["SLURM_STEP_ID"] = "0";
    return of_step;
  };
  auto leader = start_file_process({"leads", folder.path()}, variables(0));
  CHECK(leader->read_line() == "works");
  const auto pid = static_cast<std::uint32_t>(leader->pid());
  leader->send_signal(SIGKILL);
  CHECK(leader->wait().signal == SIGKILL);
  auto signals = open_signals(folder, variables(1));
  const Error error = must_fail(local_rank_zero_first(signals, [](Progress&) {}));
  CHECK(error.code == ErrorCode::rank_lost);
  CHECK(error.cause == LossCause::closed);
  CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
  CHECK(error.ranks.at(0).process.pid == pid);
}

TEST_CASE("what a dead process has left under the same name counts for nothing") {
  const TestFolder folder;
  for (const bool is_replaced : {false, true}) {
    CAPTURE(is_replaced);
    auto leader = start_file_process({"leads", folder.path()}, signal_variables(0, 2));
    CHECK(leader->read_line() == "works");
    leader->send_signal(SIGKILL);
    CHECK(leader->wait().signal == SIGKILL);
    CHECK(folder.names().size() == 1);
    std::atomic<bool> has_led = false;
    run_ranks(2, [&](int rank) {
      if (rank == 0 && !is_replaced) return;
      auto signals = open_signals(folder, signal_variables(rank, 2));
      const auto result = local_rank_zero_first(
          signals,
          [&](Progress&) {
            CHECK(has_led == (rank != 0));
            has_led = true;
          },
          patient_for(is_replaced ? Duration(20s) : Duration(200ms)));
      if (is_replaced) return must(result);
      CHECK(must_fail(result).code == ErrorCode::timed_out);
    });
  }
  CHECK(folder.names().empty());
}

TEST_CASE("two processes that both take themselves for local rank 0 are told so") {
  const TestFolder folder;
  auto leader = start_file_process({"leads", folder.path()}, signal_variables(0, 2));
  CHECK(leader->read_line() == "works");
  auto signals = open_signals(folder, signal_variables(0, 2));
  const Error error = must_fail(local_rank_zero_first(signals, [](Progress&) {}));
  CHECK(error.code == ErrorCode::busy);
  CHECK(error.detail.find(std::to_string(leader->pid())) != std::string::npos);
  leader->send_signal(SIGUSR1);
  auto other = open_signals(folder, signal_variables(1, 2));
  must(local_rank_zero_first(other, [](Progress&) {}));
  CHECK(leader->wait().exit_code == 0);
  CHECK(folder.names().empty());
}

TEST_CASE("a file that has the name of a signal that is being written, and is none, is kept") {
  const TestFolder folder;
  auto leader = start_file_process({"leads", folder.path()}, signal_variables(0, 2));
  CHECK(leader->read_line() == "works");
  leader->send_signal(SIGKILL);
  CHECK(leader->wait().signal == SIGKILL);
  const std::string name = *folder.names().begin() + ".new";
  auto signals = open_signals(folder, signal_variables(0, 2));
  write_file(folder.file(name), "a checkpoint");
  const auto refused = local_rank_zero_first(
      signals, [](Progress&) {}, patient_for(20ms));
  CHECK_FALSE(refused);
  std::string kept;
  std::getline(std::ifstream(folder.file(name)), kept);
  CHECK(kept == "a checkpoint");
  write_file(folder.file(name), "");  // of a leader that has died before it wrote
  must(local_rank_zero_first(
      signals, [](Progress&) {}, patient_for(20ms)));
}

TEST_CASE("signal files of a day ago are removed, but neither new ones nor a host's own") {
  const TestFolder folder;
  const auto leave = [&](const std::string& id) {
    auto variables = signal_variables(0, 2);
    variables["TORCHELASTIC_RUN_ID"] = id;
    auto leader = start_file_process({"leads", folder.path()}, variables);
    CHECK(leader->read_line() == "works");
    leader->send_signal(SIGKILL);
    CHECK(leader->wait().signal == SIGKILL);
  };
  const std::string own = "._signal_file_node0_a1B2c3";
  const auto make_older = [&](const std::string& name) {
    const std::time_t yesterday = std::time(nullptr) - 90'000;
    const timespec times[2] = {{yesterday, 0}, {yesterday, 0}};
    CHECK(::utimensat(AT_FDCWD, folder.file(name).c_str(), times, 0) == 0);
  };
  leave("of today");
  const std::string of_today = *folder.names().begin();
  auto signals = open_signals(folder, signal_variables(0, 2));
  leave("of yesterday");
  for (const std::string& name : folder.names())
    if (name != of_today) make_older(name);
  write_file(folder.file(own), "local rank zero done");
  make_older(own);
  CHECK(folder.names().size() == 3);
  must(local_rank_zero_first(
      signals, [](Progress&) {}, patient_for(20ms)));
  { const SignalFolder ends = std::move(signals); }
  CHECK(folder.names() == std::set<std::string>{own, of_today});
}

}  // namespace
}  // namespace muster::test
