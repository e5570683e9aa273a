#include "launch/leadership.h"

#include <algorithm>
#include <utility>

namespace muster::launch {

namespace {

std::string seconds_of(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

constexpr int quick_attempts = 3;  // that use no restart
constexpr Duration pause_max = std::chrono::seconds(60);

bool has_wanted_rank(const Node& node) { return node.wanted_rank.has_value(); }

}  // namespace

std::optional<Effect> Leadership::decide(const Situation& situation, const Roster& roster,
                                         Instant now) {
  const int newest = situation.plan == nullptr ? -1 : situation.plan->attempt;
  if (has_ended_job_ || decided_attempt_ > newest) return {};
  if (situation.plan == nullptr) return decide_first(roster, now);
  if (situation.verdict == nullptr) return grow(situation, roster);
  return decide_next(*situation.plan, *situation.verdict, roster, now);
}

void Leadership::attempt_begins(Instant now) {
  was_short_of_nodes_ = false;
  has_told_of_pause_ = false;
  began_ = now;
}

std::optional<Effect> Leadership::decide_first(const Roster& roster, Instant now) {
  const auto count = static_cast<int>(roster.nodes().size());
  const bool is_enough =
      count >= options_.nodes_max ||
      (count >= options_.nodes_min && roster.since_change(now) >= options_.last_call);
  if (is_enough) return plan(0, 0, roster.nodes());
  if (count >= options_.nodes_min || roster.waited(now) < options_.join_timeout) return {};
  return end(1, std::to_string(count) + " of " + std::to_string(options_.nodes_min) +
                    " nodes have come within " + seconds_of(options_.join_timeout) + ": " +
                    list_of(roster.nodes()));
}

std::optional<Effect> Leadership::decide_next(const Plan& plan, const Verdict& verdict,
                                              const Roster& roster, Instant now) {
  if (verdict.kind == Verdict::Kind::succeeded) return end(0, {});
  bool has_failed = verdict.kind == Verdict::Kind::rank_failed;
  if (has_failed && !verdict.is_final && plan.nodes.size() > 1) {
    // Ranks fail when a node of others is lost, and may be heard of before that.
    if (roster.waited(now) < options_.cause_timeout) return {};
    has_failed = roster.missing_of(plan).empty();
  }
  const bool has_restart = plan.restarts_used < options_.max_restarts;
  if (verdict.is_final || (has_failed && !has_restart)) return end(verdict.exit_code, {});
  const std::vector<Node> there = roster.without(verdict.nodes);
  if (static_cast<int>(there.size()) >= options_.nodes_min) {
    const bool uses_restart = has_failed || was_short_of_nodes_;
    const Duration pause = uses_restart ? Duration::zero() : pause_before_next(plan, now);
    if (pause > Duration::zero()) {
      if (std::exchange(has_told_of_pause_, true)) return {};
      return Say{Importance::notice, "nodes come and go: attempt " +
                                         std::to_string(plan.attempt + 2) + " is held back for " +
                                         seconds_of(pause + std::chrono::milliseconds(999))};
    }
    return this->plan(plan.attempt + 1, plan.restarts_used + (uses_restart ? 1 : 0), there);
  }
  was_short_of_nodes_ = true;
  std::string left = std::to_string(there.size()) + " of at least " +
                     std::to_string(options_.nodes_min) + " nodes are left: " + list_of(there);
  const int exit_code = verdict.exit_code != 0 ? verdict.exit_code : 1;  // 0: it was to grow
  if (!has_restart) return end(exit_code, std::move(left));
  if (roster.waited(now) < options_.join_timeout) return {};
  return end(exit_code, left + "; no others have come within " + seconds_of(options_.join_timeout));
}

/// A node that has come may end the attempt, for a larger one.
std::optional<Effect> Leadership::grow(const Situation& situation, const Roster& roster) const {
  const Plan& plan = *situation.plan;
  const bool has_room = static_cast<int>(plan.nodes.size()) < options_.nodes_max;
  if (!options_.scale_up || !situation.takes_part || !has_room) return {};
  if (roster.nodes().size() <= plan.nodes.size()) return {};
  Verdict verdict;
  verdict.kind = Verdict::Kind::scaled_up;
  verdict.text = "a node has come: " + list_of({roster.nodes().back()});
  return PublishVerdict{plan.attempt, std::move(verdict)};
}

Duration Leadership::pause_before_next(const Plan& plan, Instant now) const {
  const int slow_attempts = plan.attempt - plan.restarts_used - quick_attempts + 1;
  if (slow_attempts <= 0) return {};
  const Duration apart = std::min(
      pause_max, Duration(std::chrono::seconds(1)) * (1 << std::min(slow_attempts - 1, 6)));
  return began_ + apart - now;
}

/// Ranks that people have told count, if all nodes have one; else the order of arrival.
std::optional<Effect> Leadership::plan(int attempt, int restarts_used, std::vector<Node> nodes) {
  if (static_cast<int>(nodes.size()) > options_.nodes_max)
    nodes.resize(static_cast<std::size_t>(options_.nodes_max));
  if (std::all_of(nodes.begin(), nodes.end(), has_wanted_rank)) {
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const Node& a, const Node& b) { return *a.wanted_rank < *b.wanted_rank; });
    const auto same = std::adjacent_find(
        nodes.begin(), nodes.end(),
        [](const Node& a, const Node& b) { return *a.wanted_rank == *b.wanted_rank; });
    if (same != nodes.end()) {
      return end(2, "node rank " + std::to_string(*same->wanted_rank) +
                        " was given to two nodes: " + list_of({same[0], same[1]}));
    }
  }
  decided_attempt_ = attempt;
  return PublishPlan{{attempt, restarts_used, std::move(nodes)}};
}

Effect Leadership::end(int exit_code, std::string text) {
  has_ended_job_ = true;
  return PublishEnding{{exit_code, std::move(text)}};
}

}  // namespace muster::launch
