#include <signal.h>

#include <chrono>
#include <optional>
#include <string>

#include "nccl/communicator_team.h"
#include "support/await.h"

// What ends a communicator that works, and what does not: its ranks do, the store does not.

namespace muster::test {
namespace {

using Clock = std::chrono::steady_clock;

TEST_CASE("a rank that is killed in a collective: its peers leave at once, regroup and go on") {
  ServerProcess server;
  for (const int killed : {0, 2}) {
    Team team(server.address(), "g" + std::to_string(killed));
    Team::Environment environment{{"NCCL_DOUBLE_FAULTS", "collective:kill_inside+2"}};
    for (int rank = 0; rank < 4; ++rank) {
      team.start(rank, 4,
                 {"join", "create", "reduce", "reduce", "barrier", "start", "finish", "over",
                  "regroup", "create", "reduce", "barrier"},
                 rank == killed ? environment : Team::Environment{});
    }
    CHECK(team[killed].wait().signal == SIGKILL);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == killed) continue;
      CHECK(team.done(rank, "reduce") == "10");
      CHECK(team.done(rank, "reduce") == "10");
      const Said started = team.said(rank, "start");  // unless it has heard of it already
      CHECK((started.code == "ok" || started.code == "rank_lost"));
      const Said finished = team.said(rank, "finish");
      CHECK(finished.code == "ok");
      CHECK(finished.elapsed < leeway);
      const Said over = team.said(rank, "over");
      CHECK(over.code == "rank_lost");
      CHECK(over.ranks == std::to_string(killed));
      CHECK(team.done(rank, "regroup") == "3");
      CHECK(team.done(rank, "reduce") == "6");
      team.done(rank, "barrier");
    }
  }
}

TEST_CASE("calls that NCCL fails before the store knows of the loss are told who was lost") {
  ServerProcess server;
  Team team(server.address(), "g");
  for (int rank = 0; rank < 3; ++rank) {
    Team::Environment environment;
    if (rank == 1) environment = {{"NCCL_DOUBLE_FAULTS", "collective:kill_inside+2"}};
    team.start(rank, 3, {"join", "create", "insist", "over"}, environment);
  }
  CHECK(team[1].wait().signal == SIGKILL);
  for (const int rank : {0, 2}) {
    for (const char* const step : {"insist", "over"}) {
      const Said said = team.said(rank, step);
      CAPTURE(said.text);
      CHECK(said.code == "rank_lost");
      CHECK(said.ranks == "1");
      CHECK(said.elapsed < leeway);
    }
  }
}

TEST_CASE("an end in order that a peer's death has spoiled is told who was lost") {
  ServerProcess server;
  Team team(server.address(), "g");
  for (int rank = 0; rank < 3; ++rank) {
    team.start(rank, 3, {"join", "create", "hold", "close"},
               {{"NCCL_DOUBLE_FAULTS", "finalize:async=6"}});
  }
  for (int rank = 0; rank < 3; ++rank) team.done(rank, "hold");
  team[1].send_signal(SIGKILL);
  for (const int rank : {0, 2}) team[rank].send_signal(SIGUSR1);
  for (const int rank : {0, 2}) {
    const Said said = team.said(rank, "close");
    CAPTURE(said.text);
    CHECK(said.code == "rank_lost");
    CHECK(said.ranks == "1");
    CHECK(said.elapsed < leeway);
  }
}

TEST_CASE(
    "a server that was killed: the communicator goes on, and is watched once it is attached") {
  std::optional<ServerProcess> server(std::in_place);
  Team team(server->address(), "g");
  for (int rank = 0; rank < 3; ++rank) {
    const Steps last = rank == 1 ? Steps{"kill"} : Steps{"over", "stay"};
    team.start(rank, 3,
               Steps{"join", "create", "reduce", "hold", "reduce", "error", "hold", "reopen",
                     "reduce", "join", "attach", "reduce", "barrier"} +
                   last);
  }
  const auto go_on = [&] {
    for (int rank = 0; rank < 3; ++rank) team[rank].send_signal(SIGUSR1);
  };
  const auto check_reduced = [&] {
    for (int rank = 0; rank < 3; ++rank) CHECK(team.done(rank, "reduce") == "6");
    for (int rank = 0; rank < 3; ++rank) team.done(rank, "hold");
  };
  check_reduced();
  const int port = server->port();
  server->process().send_signal(SIGKILL);
  server->process().wait();
  go_on();
  check_reduced();  // without a server
  server.emplace(port);
  go_on();
  for (int rank = 0; rank < 3; ++rank) {
    team.done(rank, "reopen");
    CHECK(team.done(rank, "reduce") == "6");
    team.done(rank, "join");
    team.done(rank, "attach");
    CHECK(team.done(rank, "reduce") == "6");
  }
  for (const int rank : {0, 2}) {
    const Said over = team.said(rank, "over");
    CHECK(over.code == "rank_lost");
    CHECK(over.ranks == "1");
  }
}

TEST_CASE("a group with another process in a rank's place is not attached to; nothing ends") {
  ServerProcess server;
  Team team(server.address(), "g");
  Team others(server.address(), "others");
  const Steps made{"join", "create", "reduce"};
  const Steps attached{"join:anew", "attach", "error", "reduce", "stay"};
  const Steps waiting{"reduce", "stay"};
  for (int rank = 0; rank < 3; ++rank) {
    team.start(rank, 3, made + (rank < 2 ? attached : waiting));
    others.start(rank, 3, made + (rank < 2 ? waiting : attached));
  }
  const auto check = [](Team& of, int rank, const char* strangers) {
    const Said said = of.said(rank, "attach");
    CHECK(said.code == "mismatch");
    CHECK(said.ranks == strangers);
    of.done(rank, "error");
  };
  for (const int rank : {0, 1}) check(team, rank, "2");
  check(others, 2, "0-1");
  for (int rank = 0; rank < 3; ++rank) CHECK(team.done(rank, "reduce") == "6");
}

TEST_CASE("a server that stands still longer than a session may be silent ends nothing") {
  ServerProcess server;
  Team team(server.address(), "g");
  for (int rank = 0; rank < 3; ++rank) {
    team.start(rank, 3,
               {"join", "create", "reduce", "hold", "reduce", "error", "hold", "resume", "reduce",
                "error", "barrier", "stay"});
  }
  const auto check = [&](const char* last) {
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(team.done(rank, "reduce") == "6");
      team.done(rank, last);
    }
  };
  check("hold");
  server.process().stop();
  let_pass(6s);
  for (int rank = 0; rank < 3; ++rank) team[rank].send_signal(SIGUSR1);
  check("hold");
  server.process().send_signal(SIGCONT);
  for (int rank = 0; rank < 3; ++rank) team[rank].send_signal(SIGUSR1);
  check("barrier");
}

}  // namespace
}  // namespace muster::test
