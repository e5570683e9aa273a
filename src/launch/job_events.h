#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "launch/plan.h"

// What a launcher's state machine is told, and what it asks for.

namespace muster::launch {

using base::Instant;

struct JobOptions {
  Node self;  ///< without its number
  int nodes_min = 1;
  int nodes_max = 1;
  int max_restarts = 0;
  Duration join_timeout{std::chrono::seconds(600)};
  /// With nodes_min there, how long others are waited for after the last one that came.
  Duration last_call{std::chrono::seconds(30)};
  /// After a rank has failed: for how long it is watched whether its node, or the one of its peer,
  /// is the cause. A server needs so long to say that a launcher is gone.
  Duration cause_timeout{std::chrono::seconds(3)};
  Duration shutdown_timeout{std::chrono::seconds(30)};
  std::optional<Duration> exit_grace;  ///< how long ranks may run when another one has ended well
  bool scale_up = false;               ///< a node that comes ends the attempt, for a larger one
};

// What the rim saw.

/// The board is there, and this launcher is on it.
struct Registered {
  std::uint64_t number = 0;
};
/// Those who are registered now.
struct NodesSeen {
  std::vector<Node> nodes;
};
struct PlanSeen {
  Plan plan;
};
struct VerdictSeen {
  int attempt = 0;
  Verdict verdict;
};
struct EndingSeen {
  Ending ending;
};
/// So many nodes have told that all their ranks of the attempt have ended well.
struct SuccessCounted {
  int attempt = 0;
  int count = 0;
};
/// Nodes of the attempt are gone, or could not be reached when it began.
struct NodesLost {
  int attempt = 0;
  std::vector<int> node_ranks;
  std::string why;
};
/// The board is gone: nothing can be decided with others any more.
struct BoardLost {
  std::string why;
  int exit_code = 1;
};
struct RankEnded {
  int attempt = 0;
  int local_rank = 0;
  std::int64_t pid = 0;
  int exit_code = 0;   ///< 0: well
  std::string how;     ///< "exited with 3"
  std::string output;  ///< the last lines of one that failed
};
/// The ranks of the attempt cannot be started on this node.
struct NotStarted {
  int attempt = 0;
  int exit_code = 0;
  std::string why;
};
/// No process of the attempt is left on this node, but those that cannot be killed.
struct RanksGone {
  std::string stuck;  ///< those, for people; empty: none
};
/// Somebody sent this launcher a signal that ends it.
struct Signalled {
  int number = 0;
  bool hosts_place = false;  ///< this launcher hosts the meeting place, without which the job ends
};
struct Advance {};
using Event =
    std::variant<Registered, NodesSeen, PlanSeen, VerdictSeen, EndingSeen, SuccessCounted,
                 NodesLost, BoardLost, RankEnded, NotStarted, RanksGone, Signalled, Advance>;

// What the rim does, in order.

/// NodesSeen is to come now and every second, until this comes with `off`.
enum class Watch : std::uint8_t { off, on };
struct WatchNodes {
  Watch watch = Watch::on;
};
struct PublishPlan {
  Plan plan;
};
/// PlanSeen is to come for this attempt when its plan is published.
struct AwaitPlan {
  int attempt = 0;
};
/// VerdictSeen is to come.
struct AwaitVerdict {
  int attempt = 0;
};
struct PublishVerdict {
  int attempt = 0;
  Verdict verdict;
};
struct PublishEnding {
  Ending ending;
};
/// SuccessCounted is to come.
struct CountSuccess {
  int attempt = 0;
};
/// This launcher takes part no more.
struct Unregister {};
struct StartRanks {
  Plan plan;
  int node_rank = 0;
};
struct ForwardSignal {
  int number = 0;
};
/// RanksGone is to come.
struct EndRanks {
  Duration grace{};        ///< until they are killed
  bool were_told = false;  ///< a signal that ends them was forwarded
};
enum class Importance : std::uint8_t { detail, notice, failure };
struct Say {
  Importance importance = Importance::notice;
  std::string text;
};
struct Finish {
  int exit_code = 0;
};
using Effect =
    std::variant<WatchNodes, PublishPlan, AwaitPlan, AwaitVerdict, PublishVerdict, PublishEnding,
                 CountSuccess, Unregister, StartRanks, ForwardSignal, EndRanks, Say, Finish>;

}  // namespace muster::launch
