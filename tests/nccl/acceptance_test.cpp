#include <signal.h>

#include <chrono>
#include <optional>
#include <string>

#include "nccl/communicator_team.h"
#include "support/scale.h"

// What holds on doubles and on GPUs alike: ranks are processes that share one device, each a host
// of its own for NCCL. Nothing is asked of NCCL that only a double does.

namespace muster::test {
namespace {

constexpr std::chrono::milliseconds gpu_leeway{10'000};

TEST_CASE("one rank has a communicator of its own") {
  ServerProcess server;
  Team team(server.address(), "g");
  team.start(0, 1, {"join", "create", "reduce", "close"});
  CHECK(team.done(0, "reduce") == "1");
  team.done(0, "close");
}

TEST_CASE("two ranks on one device, of one host as NCCL sees it, are told so") {
  ServerProcess server;
  Team team(server.address(), "g");
  for (int rank = 0; rank < 2; ++rank) {
    team.start(rank, 2, {"join", "create", "attempts"}, {{"NCCL_HOSTID", "one"}});
  }
  for (int rank = 0; rank < 2; ++rank) {
    const Said said = team.said(rank, "create");
    CHECK(said.code == "duplicate_device");
    CHECK(said.ranks == "0-1");
    CHECK(team.done(rank, "attempts") == "0");
  }
}

TEST_CASE("two and four ranks reduce over their communicator") {
  ServerProcess server;
  for (const int size : {2, 4}) {
    Team team(server.address(), "of " + std::to_string(size));
    for (int rank = 0; rank < size; ++rank) {
      team.start(rank, size, {"join", "warm_up", "create", "reduce", "reduce", "close", "barrier"});
    }
    for (int rank = 0; rank < size; ++rank) {
      for (int time = 0; time < 2; ++time) {
        CHECK(team.done(rank, "reduce") == std::to_string(size * (size + 1) / 2));
      }
      team.done(rank, "close");
    }
  }
}

TEST_CASE("ranks add up what each has scaled, in both of NCCL's modes") {
  ServerProcess server;
  for (const int size : {1, 2, 3}) {
    Team team(server.address(), "of " + std::to_string(size));
    for (int rank = 0; rank < size; ++rank) {
      team.start(rank, size,
                 {"join", "create", "scaled", "scaled", "close", "blocking", "create", "scaled",
                  "scaled", "close", "barrier"});
    }
    const std::string sum = std::to_string(size * (size + 1) * (2 * size + 1) / 6);
    for (int rank = 0; rank < size; ++rank) {
      for (int time = 0; time < 4; ++time) CHECK(team.done(rank, "scaled") == sum);
      team.done(rank, "close");
    }
  }
}

TEST_CASE("groups {0,1}, {1,2} and {0,2} overlap, a communicator each") {
  ServerProcess server;
  // Each process is in two of them, and begins with the first.
  Team low(server.address(), "a");
  const Team::Environment third{{"NCCL_HOSTID", "rank 2"}};
  const Steps twice = {"swap", "reduce", "swap", "reduce", "stay"};
  low.start(0, 2, Steps{"join", "create", "swap", "join:c", "create"} + twice);
  low.start(1, 2, Steps{"join", "create", "swap", "rank:0", "join:b", "create"} + twice);
  Team high(server.address(), "b");
  high.start(1, 2, Steps{"join", "create", "swap", "join:c", "create"} + twice, third);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(low.done(rank, "reduce") == "3");
    CHECK(low.done(rank, "reduce") == "3");
  }
  CHECK(high.done(1, "reduce") == "3");
  CHECK(high.done(1, "reduce") == "3");
}

TEST_CASE("a group within the world reduces what that has reduced: rank 3 sees 6, the others 18") {
  ServerProcess server;
  Team team(server.address(), "world");
  for (int rank = 0; rank < 4; ++rank) {
    Steps steps{"join", "create", "put:" + std::to_string(rank), "fold"};
    if (rank < 3)
      steps = steps + Steps{"swap", "size:3", "join:inner", "create", "fold", "barrier"};
    team.start(rank, 4, steps + Steps{"stay"});
  }
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(team.done(rank, "fold") == "6");
    if (rank < 3) CHECK(team.done(rank, "fold") == "18");
  }
}

TEST_CASE("a rank that does not come is named at the deadline; the next attempt makes one") {
  ServerProcess server;
  Team team(server.address(), "g");
  team.start(0, 2, {"join", "create:2000", "attempts", "create", "reduce", "barrier"});
  team.start(1, 2, {"join", "hold", "create", "create", "reduce", "barrier"});
  const Said said = team.said(0, "create");
  CHECK(said.code == "timed_out");
  CHECK(said.ranks == "1");
  CHECK(said.elapsed < 2000ms + leeway);
  CHECK(team.done(0, "attempts") == "0");
  team[1].send_signal(SIGUSR1);
  CHECK(team.said(1, "create").code == "timed_out");  // of the same round
  for (int rank = 0; rank < 2; ++rank) CHECK(team.done(rank, "reduce") == "3");
}

TEST_CASE("ranks inside of a collective leave it when another is killed, regroup and go on") {
  ServerProcess server;
  Team team(server.address(), "g");
  for (int rank = 0; rank < 3; ++rank) {
    const Steps killed{"hold"};
    const Steps others{"start", "finish", "over", "regroup", "create", "reduce", "barrier"};
    team.start(rank, 3,
               Steps{"join", "create", "reduce", "barrier"} + (rank == 1 ? killed : others));
  }
  team.done(1, "hold");
  for (const int rank : {0, 2}) team.done(rank, "start");
  team[1].send_signal(SIGKILL);
  for (const int rank : {0, 2}) {
    CHECK(team.said(rank, "finish").elapsed < gpu_leeway);
    const Said over = team.said(rank, "over");
    CHECK(over.code == "rank_lost");
    CHECK(over.ranks == "1");
    CHECK(team.done(rank, "regroup") == "2");
    CHECK(team.done(rank, "reduce") == "3");
  }
}

TEST_CASE("a server that is started anew costs no communicator") {
  std::optional<ServerProcess> server(std::in_place);
  Team team(server->address(), "g");
  for (int rank = 0; rank < 2; ++rank) {
    team.start(rank, 2,
               {"join", "create", "reduce", "hold", "reduce", "hold", "reopen", "join", "attach",
                "reduce", "error", "stay"});
  }
  const auto both = [&](const std::string& step) {
    for (int rank = 0; rank < 2; ++rank) team.done(rank, step);
    for (int rank = 0; rank < 2; ++rank) team[rank].send_signal(SIGUSR1);
  };
  const int port = server->port();
  for (int rank = 0; rank < 2; ++rank) team.done(rank, "hold");
  server->process().send_signal(SIGKILL);
  server->process().wait();
  for (int rank = 0; rank < 2; ++rank) team[rank].send_signal(SIGUSR1);
  for (int rank = 0; rank < 2; ++rank) CHECK(team.done(rank, "reduce") == "3");
  server.emplace(port);
  both("hold");
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(team.done(rank, "reduce") == "3");
    team.done(rank, "error");
  }
}

TEST_CASE("a hundred communicators, one after the other, cost no memory of the device") {
  ServerProcess server;
  Team team(server.address(), "g");
  constexpr int parts = 10;  // each of which says something
  Steps steps{"join"};
  for (int part = 0; part < parts; ++part) {
    steps.push_back("cycles:" + std::to_string(scaled(100 / parts)));
  }
  for (int rank = 0; rank < 2; ++rank) team.start(rank, 2, steps + Steps{"barrier"});
  constexpr int lost_kib_max = 32 << 10;
  for (int rank = 0; rank < 2; ++rank) {
    int lost_kib = 0;
    for (int part = 0; part < parts; ++part) lost_kib += std::stoi(team.done(rank, "cycles"));
    CHECK(lost_kib < lost_kib_max);
  }
}

}  // namespace
}  // namespace muster::test
