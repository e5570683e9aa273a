#include <signal.h>
#include <sys/wait.h>

#include <optional>

#include <doctest/doctest.h>

#include "nccl/doubles/rank_process.h"
#include "support/await.h"

TEST_SUITE_BEGIN("nccl_doubles_processes");

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

Lines lines_of(Process& process, std::size_t count) {
  Lines lines;
  while (lines.size() < count) {
    const auto line = process.read_line();
    if (!line) break;
    lines.push_back(*line);
  }
  return lines;
}

/// Rank 0, with the id of the ranks that follow.
struct First {
  Process process;
  std::string id;
  explicit First(int rank_count, Lines steps, std::map<std::string, std::string> environment = {})
      : process(rank_process({0, rank_count, "-", with_mint(std::move(steps)), environment})),
        id(process.read_line().value_or("")) {}
  static Lines with_mint(Lines steps) {
    steps.insert(steps.begin(), "mint");
    return steps;
  }
};

std::map<std::string, std::string> fault(const std::string& text) {
  return {{"NCCL_DOUBLE_FAULTS", text}};
}

/// Nothing more is said for a while: it waits.
bool is_silent(Process& process) { return !process.read_line(200ms); }

bool was_killed(Process& process) { return process.wait().signal == SIGKILL; }

TEST_CASE("processes meet, calculate, and end without a trace") {
  const Lines steps{"init", "settle", "reduce", "reduce", "finalize", "destroy"};
  First first(3, steps);
  Process second(rank_process({1, 3, first.id, steps, {}}));
  Process third(rank_process({2, 3, first.id, steps, {}}));
  const Lines expected{"7", "0", "6", "6", "0", "0"};
  for (Process* const process : {&first.process, &second, &third}) {
    CHECK(lines_of(*process, 6) == expected);
    CHECK(process->wait().exit_code == 0);
  }
}

TEST_CASE("two processes with one device on one host are refused") {
  const std::map<std::string, std::string> same{{"NCCL_HOSTID", "one"}};
  First first(2, {"init", "settle", "abort"}, same);
  Process second(rank_process({1, 2, first.id, {"init", "settle", "abort"}, same}));
  CHECK(lines_of(first.process, 3) == Lines{"7", "5", "0"});
  CHECK(lines_of(second, 3) == Lines{"7", "5", "0"});
}

TEST_CASE("the id's process is dead: an error once the retries are used up") {
  std::optional<First> first;
  first.emplace(2, Lines{});
  const std::string id = first->id;
  CHECK(first->process.wait().exit_code == 0);
  Process second(
      rank_process({1,
                    2,
                    id,
                    {"init", "settle", "abort"},
                    {{"NCCL_SOCKET_RETRY_CNT", "4"}, {"NCCL_SOCKET_RETRY_SLEEP_MSEC", "10"}}}));
  CHECK(lines_of(second, 3) == Lines{"7", "6", "0"});
}

TEST_CASE("the id's process is dead, but not a child that it exec'd: nobody refuses, none hears") {
  First first(2, {"heir"});
  CHECK(first.process.wait().exit_code == 0);
  Process second(
      rank_process({1,
                    2,
                    first.id,
                    {"init", "settle"},
                    {{"NCCL_SOCKET_RETRY_CNT", "2"}, {"NCCL_SOCKET_RETRY_SLEEP_MSEC", "1"}}}));
  CHECK(lines_of(second, 1) == Lines{"7"});
  CHECK(is_silent(second));
}

TEST_CASE("a process in which no socket interface is found gets an invalid usage, for good") {
  const std::map<std::string, std::string> none{{"NCCL_SOCKET_IFNAME", "=none,such"}};
  First first(1, {"hold"});
  Process second(rank_process({0, 1, first.id, {"init", "init"}, none}));
  CHECK(lines_of(second, 2) == Lines{"5", "5"});
}

TEST_CASE("a peer killed while it checks in leaves the others waiting") {
  First first(3, {"init", "settle"});
  Process second(rank_process({1, 3, first.id, {"init", "settle"}, {}}));
  Process third(rank_process({2, 3, first.id, {"init", "settle"}, fault("check_in:kill")}));
  CHECK(was_killed(third));
  CHECK(lines_of(first.process, 1) == Lines{"7"});
  CHECK(lines_of(second, 1) == Lines{"7"});
  CHECK(is_silent(first.process));
  CHECK(is_silent(second));
}

TEST_CASE("a peer killed in the ring is an error at once") {
  First first(3, {"init", "settle"});
  Process second(rank_process({1, 3, first.id, {"init", "settle"}, {}}));
  Process third(rank_process({2, 3, first.id, {"init", "settle"}, fault("ring:kill")}));
  CHECK(was_killed(third));
  CHECK(lines_of(first.process, 2) == Lines{"7", "6"});
  CHECK(lines_of(second, 2) == Lines{"7", "6"});
}

TEST_CASE("a peer killed while connections are set up leaves the others waiting") {
  const std::map<std::string, std::string> at_once{{"NCCL_RUNTIME_CONNECT", "0"}};
  First first(2, {"init", "settle"}, at_once);
  Process second(rank_process({1, 2, first.id, {"init", "settle"}, fault("connect:kill")}));
  CHECK(was_killed(second));
  CHECK(lines_of(first.process, 1) == Lines{"7"});
  CHECK(is_silent(first.process));
}

TEST_CASE("a peer killed in a collective is an error, and the stream goes on after the abort") {
  const Lines steps{"init", "settle", "reduce", "start", "settle_error", "abort", "synchronize"};
  First first(3, steps);
  Process second(rank_process({1, 3, first.id, steps, {}}));
  Process third(rank_process({2,
                              3,
                              first.id,
                              {"init", "settle", "reduce", "start", "synchronize"},
                              fault("collective:kill_inside+1")}));
  CHECK(was_killed(third));
  const Lines expected{"7", "0", "6", "6", "0", "0"};
  CHECK(lines_of(first.process, 6) == expected);
  CHECK(lines_of(second, 6) == expected);
}

TEST_CASE("a peer that goes between operations is not noticed") {
  First first(2, {"init", "settle", "reduce", "hold", "settle"});
  Process second(rank_process({1, 2, first.id, {"init", "settle", "reduce"}, {}}));
  CHECK(lines_of(second, 3) == Lines{"7", "0", "3"});
  CHECK(second.wait().exit_code == 0);
  CHECK(lines_of(first.process, 4) == Lines{"7", "0", "3", "held"});
  first.process.send_signal(SIGUSR1);  // it may go on
  CHECK(lines_of(first.process, 1) == Lines{"0"});
}

TEST_CASE("a process that exits in a phase ends with the code that it was given") {
  First first(1, {"init", "settle"}, fault("init:exit=7"));
  CHECK(first.process.wait().exit_code == 7);
}

TEST_CASE("a process that is stopped in a phase goes on when it is let") {
  for (const char* const where : {"init:stop", "connect:stop_inside"}) {
    First first(1, {"init", "settle"}, fault(where));
    siginfo_t halted;
    const auto pid = static_cast<id_t>(first.process.pid());
    REQUIRE(::waitid(P_PID, pid, &halted, WSTOPPED | WEXITED | WNOWAIT) == 0);
    CHECK(halted.si_code == CLD_STOPPED);
    first.process.send_signal(SIGCONT);
    CHECK(lines_of(first.process, 2) == Lines{"7", "0"});
  }
}

TEST_CASE("a handle that NCCL never gave ends the process, with a word why") {
  Process::Options options = rank_process({0, 1, "-", {"unknown"}, {}});
  options.take_errors = true;
  Process process(options);
  CHECK(process.wait().signal == SIGABRT);
  CHECK(process.read_errors().find("is no communicator") != std::string::npos);
}

}  // namespace
}  // namespace muster::test
