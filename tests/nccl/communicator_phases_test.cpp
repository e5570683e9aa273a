#include <signal.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "muster/inspect.h"
#include "nccl/communicator_team.h"
#include "support/ranks.h"

// One of three ranks goes missing, is killed or is stopped in each phase of `create`. The others
// are told in time, and go on without it: they regroup and make another communicator. The phases
// of a test run at once, each in a group of its own.

namespace muster::test {
namespace {

enum class Place { itself, call, background };

/// Where a rank can be in `create`, and how it is brought to do something there.
struct Phase {
  std::string name;
  int rank = 1;
  Place place = Place::background;  ///< in a call of the double, or in its background
  std::string of_double;            ///< the phase there
  std::string attempts = "1";       ///< what it costs the others: those that failed inside NCCL
};

const std::vector<Phase>& phases() {
  static const std::vector<Phase> all{
      {"before the roll call", 1, Place::itself, "", "0"},
      {"before the id", 0, Place::call, "get_unique_id", "0"},
      {"before NCCL", 1, Place::call, "init"},
      {"before NCCL, the id's", 0, Place::call, "init"},
      {"check-in", 1, Place::background, "check_in"},
      {"check-in, the id's", 0, Place::background, "check_in"},
      {"ring", 1, Place::background, "ring"},
      {"connect", 2, Place::background, "connect"},
      {"ready", 1, Place::background, "ready"},
      {"warm-up", 1, Place::background, "collective"},
      {"before the vote", 1, Place::itself, ""},
      {"afterwards", 2, Place::itself, "", "0"},
  };
  return all;
}

bool is_within(const Phase& phase) {
  return phase.name != "before the roll call" && phase.name != "afterwards";
}

/// How the rank that is meant gets there, and does `what`.
struct WayToPhase {
  Steps steps;
  Team::Environment environment;
};
WayToPhase way_to(const Phase& phase, const std::string& what, const std::string& create,
                  const std::string& mode) {
  const Steps before{"join", "warm_up", mode};
  if (phase.name == "before the roll call") return {before + Steps{what}, {}};
  if (phase.name == "before the vote") {
    return {before + Steps{"at_end:" + what, create, "attempts", "regroup:2"}, {}};
  }
  if (phase.name == "afterwards") return {before + Steps{create, "barrier", what}, {}};
  const bool is_call = phase.place == Place::call;
  const std::string kind =
      what == "stay" ? (is_call ? "hang" : "forever") : what + (is_call ? "" : "_inside");
  return {before + Steps{create, "attempts", "regroup:2"},
          {{"NCCL_DOUBLE_FAULTS", phase.of_double + ":" + kind + "*1"}}};
}

const Steps once_more{"create", "reduce", "barrier"};

/// What they make of it once they have got together again.
void check_that_they_go_on(Team& team, const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    CHECK(team.done(rank, "regroup") == std::to_string(ranks.size()));
    team.done(rank, "create");
    CHECK(team.done(rank, "reduce") == std::to_string(ranks.size() * (ranks.size() + 1) / 2));
    team.done(rank, "barrier");
  }
}

std::vector<int> all_but(int missing) {
  std::vector<int> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    if (rank != missing) ranks.push_back(rank);
  }
  return ranks;
}

/// A rank of each phase dies or stops; the others hear of it after `lost_after` at the latest.
void check_losses(const std::string& what, const std::string& mode,
                  std::chrono::milliseconds lost_after) {
  ServerProcess server;
  std::list<Team> teams;
  for (const Phase& phase : phases()) {
    Team& team = teams.emplace_back(server.address(), phase.name);
    for (const int rank : all_but(phase.rank)) {
      const Steps over = phase.name == "afterwards" ? Steps{"barrier", "over"} : Steps{};
      team.start(rank, 3,
                 Steps{"join", "warm_up", mode, "create", "attempts"} + over + Steps{"regroup"} +
                     once_more);
    }
    const WayToPhase way = way_to(phase, what, "create", mode);
    team.start(phase.rank, 3, way.steps, way.environment);
  }
  auto team = teams.begin();
  for (const Phase& phase : phases()) {
    const std::vector<int> others = all_but(phase.rank);
    for (const int rank : others) {
      const Said said = team->said(rank, phase.name == "afterwards" ? "over" : "create");
      CAPTURE(phase.name);
      CAPTURE(rank);
      CAPTURE(said.text);
      CHECK(said.code == "rank_lost");
      CHECK(said.ranks == std::to_string(phase.rank));
      CHECK(said.elapsed < lost_after + leeway);
      if (phase.name != "afterwards") CHECK(team->done(rank, "attempts") == phase.attempts);
    }
    check_that_they_go_on(*team, others);
    Process& gone = (*team)[phase.rank];
    if (what == "kill") CHECK(gone.wait().signal == SIGKILL);
    if (what == "stop" && is_within(phase)) {
      gone.send_signal(SIGCONT);
      const Said said = team->said(phase.rank, "create");  // before or after its session resumes
      CHECK((said.code == "suspended" || said.code == "session_expired"));
    }
    ++team;
  }
}

TEST_CASE("a rank that is killed in any phase is told of at once, and the others go on") {
  for (const char* const mode : {"nonblocking", "blocking"}) {
    CAPTURE(mode);
    check_losses("kill", mode, 500ms);
  }
}

TEST_CASE("a rank that is stopped in any phase is told of when its session is over, and fails") {
  check_losses("stop", "nonblocking", 6000ms);
}

/// A rank of each phase never gets out of it.
void check_hangs(const std::string& mode) {
  // What hangs in a thread of NCCL's is given up, and its rank goes on with the others.
  struct Hang {
    std::string phase;
    const char* ranks;
    bool goes_on = true;
    const char* code = "timed_out";
  };
  const std::vector<Hang> hangs{
      {"before the roll call", "1", false},
      {"before the id", "0"},
      {"before NCCL", "1", true, "nccl"},  // its own call did not return
      {"before NCCL, the id's", "0", true, "nccl"},
      {"check-in", "0-2"},
      {"check-in, the id's", "0-2"},
      {"ring", "0-2"},
      {"connect", "0-2"},
      {"ready", "0-2"},
      {"warm-up", "0-2"},
      {"before the vote", "1", true, "nccl"},  // the driver's did not
  };
  ServerProcess server;
  std::list<Team> teams;
  const auto phase_of = [](const Hang& hang) -> const Phase& {
    return *std::find_if(phases().begin(), phases().end(),
                         [&](const Phase& phase) { return phase.name == hang.phase; });
  };
  for (const Hang& hang : hangs) {
    Team& team = teams.emplace_back(server.address(), hang.phase);
    const Phase& phase = phase_of(hang);
    for (const int rank : all_but(phase.rank)) {
      team.start(
          rank, 3,
          Steps{"join", "warm_up", mode, "create:4000", "attempts", "regroup:2"} + once_more);
    }
    const WayToPhase way = way_to(phase, "stay", "create:4000", mode);
    team.start(phase.rank, 3, way.steps + once_more, way.environment);
  }
  auto team = teams.begin();
  for (const Hang& hang : hangs) {
    const int hanging = phase_of(hang).rank;
    std::vector<int> ranks = all_but(hanging);
    if (hang.goes_on) ranks.push_back(hanging);
    std::chrono::milliseconds longest{0};
    for (const int rank : ranks) {
      const Said said = team->said(rank, "create");
      CAPTURE(hang.phase);
      CAPTURE(rank);
      CAPTURE(said.text);
      CHECK(said.code == hang.code);
      CHECK(said.ranks == hang.ranks);
      longest = std::max(longest, said.elapsed);
      CHECK(said.elapsed < 4000ms + leeway);
      CHECK(team->done(rank, "attempts") == phase_of(hang).attempts);
    }
    CHECK(longest >= 3500ms);  // one that came later waits for less
    check_that_they_go_on(*team, ranks);
    ++team;
  }
}

TEST_CASE("a rank that hangs in any phase is waited for until the deadline") {
  for (const char* const mode : {"nonblocking", "blocking"}) {
    CAPTURE(mode);
    check_hangs(mode);
  }
}

/// Rank 1 has voted, and is killed while its vote waits for those of the others.
void kill_voter(Store& store, Team& team, const std::string& group) {
  for (const int rank : {0, 2}) team.done(rank, "held");
  await([&] {
    const auto report = inspect_group(store, group);
    return report && report->round && report->round->called == std::vector<RankRange>{{1, 1}};
  });
  team[1].send_signal(SIGKILL);
  CHECK(team[1].wait().signal == SIGKILL);
}

TEST_CASE("a rank that is killed between its vote and the end of it: none has it, or it is over") {
  ServerOptions options;
  options.grace = 2s;  // so long the vote of the one that is gone counts
  const Server server = start_disturbed_server(options);
  Store store = connect(server);
  Team late(server.addresses().front(), "late");
  Team in_time(server.addresses().front(), "in time");
  for (Team* const team : {&late, &in_time}) {
    const Steps over = team == &in_time ? Steps{"over"} : Steps{"attempts"};
    for (const int rank : {0, 2}) {
      team->start(
          rank, 3,
          Steps{"join", "warm_up", "at_end:hold", "create"} + over + Steps{"regroup"} + once_more);
    }
    team->start(1, 3, {"join", "warm_up", "create", "stay"});
  }
  kill_voter(store, in_time, "in time");
  for (const int rank : {0, 2}) in_time[rank].send_signal(SIGUSR1);
  kill_voter(store, late, "late");
  late[0].send_signal(SIGUSR1);
  const auto check_lost = [](Team& team, int rank, const char* step) {
    const Said said = team.said(rank, step);
    CAPTURE(said.text);
    CHECK(said.code == "rank_lost");
    CHECK(said.ranks == "1");
  };
  check_lost(late, 0, "create");
  late[2].send_signal(SIGUSR1);
  check_lost(late, 2, "create");
  for (const int rank : {0, 2}) {
    CHECK(late.done(rank, "attempts") == "1");
    in_time.done(rank, "create");
    check_lost(in_time, rank, "over");
  }
  for (Team* const team : {&late, &in_time}) check_that_they_go_on(*team, {0, 2});
}

}  // namespace
}  // namespace muster::test
