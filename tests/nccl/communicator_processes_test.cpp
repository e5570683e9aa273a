#include <signal.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "muster/error.h"
#include "nccl/communicator_team.h"

// What `create` makes of everything that NCCL does not, or not in time, or not with a name: ranks
// are processes with a device each. Worlds whose outcomes are independent are started at once.

namespace muster::test {
namespace {

struct Case {
  std::string what;
  int rank = 1;                   ///< of three: the one that differs
  Steps settings;                 ///< its own, before it creates
  Team::Environment environment;  ///< its own
  ErrorCode code = ErrorCode::internal;
  const char* ranks = "1";
  const char* detail = "";  ///< what it must hold
  std::uint64_t actual = 0;
};

Team::Environment fault(const std::string& text) { return {{"NCCL_DOUBLE_FAULTS", text}}; }

/// Runs all of them at once, each with three ranks.
void check_all(const std::vector<Case>& cases, const Steps& settings, const char* attempts) {
  ServerProcess server;
  std::list<Team> teams;
  for (const Case& one : cases) {
    Team& team = teams.emplace_back(server.address(), one.what);
    for (int rank = 0; rank < 3; ++rank) {
      const bool is_meant = rank == one.rank;
      const Steps own = is_meant ? one.settings : Steps{};
      const Steps steps = settings + own + Steps{"join", "create", "attempts", "barrier"};
      team.start(rank, 3, steps, is_meant ? one.environment : Team::Environment{});
    }
  }
  auto team = teams.begin();
  for (const Case& one : cases) {
    for (int rank = 0; rank < 3; ++rank) {
      const Said said = team->said(rank, "create");
      CAPTURE(one.what);
      CAPTURE(rank);
      CAPTURE(said.text);
      CHECK(said.code == name_of(one.code));
      CHECK(said.ranks == one.ranks);
      CHECK(said.actual == one.actual);
      CHECK(said.text.find(one.detail) != std::string::npos);
      CHECK(said.elapsed < leeway);
      CHECK(team->done(rank, "attempts") == attempts);
    }
    for (int rank = 0; rank < 3; ++rank) team->done(rank, "barrier");
    ++team;
  }
}

TEST_CASE("two and four processes get a communicator, reduce over it and close it") {
  ServerProcess server;
  for (const int world_size : {2, 4}) {
    Team team(server.address(), "of " + std::to_string(world_size));
    for (int rank = 0; rank < world_size; ++rank) {
      team.start(rank, world_size,
                 {"join", "create", "reduce", "reduce", "barrier", "close", "barrier"});
    }
    for (int rank = 0; rank < world_size; ++rank) {
      CHECK(team.said(rank, "create").elapsed < leeway);
      for (int turn = 0; turn < 2; ++turn) {
        CHECK(team.done(rank, "reduce") == std::to_string(world_size * (world_size + 1) / 2));
      }
      team.done(rank, "barrier");
      team.done(rank, "close");
      team.done(rank, "barrier");  // who leaves at once would end it for those still in `close`
      CHECK(team[rank].wait().exit_code == 0);
    }
  }
}

TEST_CASE("what is wrong before NCCL is entered is told by all, and costs no attempt") {
  const Team::Environment newer{{"NCCL_DOUBLE_VERSION", "22900"}};
  const Team::Environment old{{"NCCL_DOUBLE_VERSION", "21700"}};
  const Team::Environment no_driver{{"CUDA_DOUBLE_INIT_RESULT", "100"}};
  const Team::Environment no_device{{"CUDA_DOUBLE_DEVICES", "0"}};
  const Team::Environment host_of_2{{"NCCL_HOSTID", "rank 2"}};
  const Team::Environment fixed_id{{"NCCL_COMM_ID", "127.0.0.1:1"}};
  const Team::Environment blocking{{"NCCL_COMM_BLOCKING", "1"}};
  const Steps no_nccl{"nccl:/nowhere/libnccl.so.2"};
  const Steps no_cuda{"cuda:/nowhere/libcuda.so.1"};
  check_all(
      {
          {"version", 1, {}, newer, ErrorCode::mismatch, "1", "rank 0 has NCCL 2.28.9"},
          {"first", 0, {}, newer, ErrorCode::mismatch, "1-2", "rank 0 has NCCL 2.29.0"},
          {"old", 1, {}, old, ErrorCode::library_missing, "1", "2.17.0 is too old"},
          {"no NCCL", 2, no_nccl, {}, ErrorCode::library_missing, "2", "/nowhere/libnccl.so.2"},
          {"no CUDA", 0, no_cuda, {}, ErrorCode::library_missing, "0", "/nowhere/libcuda.so.1"},
          {"no driver", 1, {}, no_driver, ErrorCode::no_device, "1", "cuInit"},
          {"no device", 1, {}, no_device, ErrorCode::no_device, "1", "no CUDA-capable device"},
          {"same device", 1, {}, host_of_2, ErrorCode::duplicate_device, "1-2"},
          {"warm-up", 1, {"warm_up"}, {}, ErrorCode::mismatch, "1", "warm_up"},
          {"CTAs", 0, {"ctas:4"}, {}, ErrorCode::mismatch, "1-2", "ctas_max"},
          {"fixed id", 1, {}, fixed_id, ErrorCode::nccl, "1", "NCCL_COMM_ID"},
          {"blocking", 1, {}, blocking, ErrorCode::nccl, "1", "NCCL_COMM_BLOCKING"},
          {"no id", 0, {}, fault("get_unique_id:result=2"), ErrorCode::nccl, "0", "UniqueId", 2},
      },
      {}, "0");
}

TEST_CASE("what fails inside NCCL on one rank is told by all, and costs an attempt") {
  check_all(
      {
          {"init", 1, {}, fault("init:result=3"), ErrorCode::nccl, "1", "Init", 3},
          {"init of the first", 0, {}, fault("init:result=2"), ErrorCode::nccl, "0", "Init", 2},
          {"interface", 1, {}, {{"NCCL_SOCKET_IFNAME", "=none"}}, ErrorCode::nccl, "1", "Init", 5},
          {"check-in", 1, {}, fault("check_in:result=6"), ErrorCode::nccl, "1", "NCCL", 6},
          {"ring", 1, {}, fault("ring:result=2"), ErrorCode::nccl, "1", "NCCL", 2},
          {"connect", 2, {}, fault("connect:result=3"), ErrorCode::nccl, "2", "NCCL", 3},
          {"ready", 0, {}, fault("ready:result=1"), ErrorCode::nccl, "0", "NCCL", 1},
          {"collective", 1, {}, fault("collective:result=1"), ErrorCode::nccl, "1", "AllReduce", 1},
          {"work", 1, {}, fault("collective:async=3"), ErrorCode::nccl, "1", "NCCL", 3},
      },
      {"warm_up"}, "1");
}

TEST_CASE("a rank that hangs in NCCL ends it for all at the deadline") {
  struct Hang {
    std::string phase;
    const char* ranks;  ///< who waited
  };
  const std::vector<Hang> hangs{
      {"check_in", "0-2"}, {"ring", "0-2"}, {"connect", "0-2"}, {"ready", "1"}};
  ServerProcess server;
  std::list<Team> teams;
  for (const Hang& hang : hangs) {
    Team& team = teams.emplace_back(server.address(), hang.phase);
    for (int rank = 0; rank < 3; ++rank) {
      team.start(rank, 3, {"join", "create:3000", "barrier"},
                 rank == 1 ? fault(hang.phase + ":forever") : Team::Environment{});
    }
  }
  auto team = teams.begin();
  for (const Hang& hang : hangs) {
    std::chrono::milliseconds longest{0};
    for (int rank = 0; rank < 3; ++rank) {
      const Said said = team->said(rank, "create");
      CAPTURE(hang.phase);
      CAPTURE(rank);
      CAPTURE(said.text);
      CHECK(said.code == "timed_out");
      CHECK(said.ranks == hang.ranks);
      longest = std::max(longest, said.elapsed);
      CHECK(said.elapsed < 3000ms + leeway);
    }
    CHECK(longest >= 2600ms);  // one that came later waits for less
    for (int rank = 0; rank < 3; ++rank) team->done(rank, "barrier");
    ++team;
  }
}

TEST_CASE("a rank that goes while nothing is called is noticed, though NCCL does not") {
  ServerProcess server;
  for (const char* const going : {"exit", "leave"}) {
    Team team(server.address(), going);
    for (int rank = 0; rank < 3; ++rank) {
      const Steps last = rank == 1 ? Steps{"hold", going, "stay"} : Steps{"over", "stay"};
      team.start(rank, 3, Steps{"join", "create", "reduce"} + last);
    }
    for (int rank = 0; rank < 3; ++rank) CHECK(team.done(rank, "reduce") == "6");
    team.done(1, "hold");
    const auto began = std::chrono::steady_clock::now();
    team[1].send_signal(SIGUSR1);
    for (const int rank : {0, 2}) {
      const Said said = team.said(rank, "over");
      CHECK(said.code == (going == std::string("exit") ? "rank_lost" : "rank_left"));
      CHECK(said.ranks == "1");
    }
    CHECK(std::chrono::steady_clock::now() - began < leeway);
  }
}

TEST_CASE("the id's process dies when it has told it: the others hear it from the store") {
  // NCCL tries again for a minute, fails before the store knows, or never sees that nobody is
  // there.
  const std::string late = "init:delay=300*1";  // it is dead then
  const Team::Environment patient = fault(late);
  const Team::Environment impatient{{"NCCL_DOUBLE_FAULTS", late},
                                    {"NCCL_SOCKET_RETRY_CNT", "5"},
                                    {"NCCL_SOCKET_RETRY_SLEEP_MSEC", "1"}};
  struct Way {
    std::string what;
    Steps settings;  ///< of the rank that dies
    Team::Environment others;
  };
  const std::vector<Way> ways{{"many retries", {}, patient},
                              {"few retries", {}, impatient},
                              {"an heir", {"heir"}, impatient}};
  ServerProcess server;
  std::list<Team> teams;
  for (const Way& way : ways) {
    Team& team = teams.emplace_back(server.address(), way.what);
    team.start(0, 3, way.settings + Steps{"join", "create"}, fault("init:kill"));
    for (const int rank : {1, 2}) {
      team.start(rank, 3, {"join", "create", "attempts", "regroup", "create", "reduce", "barrier"},
                 way.others);
    }
  }
  auto way = ways.begin();
  for (Team& team : teams) {
    CAPTURE(way->what);
    CHECK(team[0].wait().signal == SIGKILL);
    for (const int rank : {1, 2}) {
      const Said said = team.said(rank, "create");
      CAPTURE(rank);
      CAPTURE(said.text);
      CHECK(said.code == "rank_lost");
      CHECK(said.ranks == "0");
      CHECK(said.elapsed < leeway);
      CHECK(team.done(rank, "attempts") == "1");
    }
    for (const int rank : {1, 2}) {
      CHECK(team.done(rank, "regroup") == "2");
      CHECK(team.done(rank, "reduce") == "3");
    }
    ++way;
  }
}

TEST_CASE("a process in which NCCL finds no socket interface fails each time; others go on") {
  ServerProcess server;
  Team team(server.address(), "g");
  const Steps tried{"join", "create", "create", "attempts", "barrier"};
  team.start(0, 3, tried + Steps{"leave"}, {{"NCCL_SOCKET_IFNAME", "=none"}});
  for (const int rank : {1, 2}) {
    team.start(rank, 3, tried + Steps{"regroup", "create", "reduce", "barrier"});
  }
  for (int rank = 0; rank < 3; ++rank) {
    for (int time = 0; time < 2; ++time) {
      const Said said = team.said(rank, "create");
      CHECK(said.code == "nccl");
      CHECK(said.ranks == "0");
      CHECK(said.actual == 5);
      CHECK(said.text.find("no socket interface") != std::string::npos);
    }
    CHECK(team.done(rank, "attempts") == "0");
  }
  for (const int rank : {1, 2}) CHECK(team.done(rank, "reduce") == "3");
}

}  // namespace
}  // namespace muster::test
