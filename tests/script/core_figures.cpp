#include "core/report.h"
#include "core_runner.h"

// The step `figures`: what the server has counted.

namespace muster::script {
namespace {

/// Figures with names, in the order in which they are told.
class ToldFigures {
 public:
  explicit ToldFigures(Line& line) : line_(line) {}
  ~ToldFigures() {
    if (!any_) line_.words += " nothing";
  }
  ToldFigures(const ToldFigures&) = delete;
  ToldFigures& operator=(const ToldFigures&) = delete;

  void add(std::string name, std::uint64_t value) {
    if (value == 0) return;
    line_.with(std::move(name), std::to_string(value));
    any_ = true;
  }
  void add(std::string name, Duration value) {
    add(std::move(name), static_cast<std::uint64_t>(value.count()));
  }

 private:
  Line& line_;
  bool any_ = false;
};

void add_operations(ToldFigures& told, const core::Outcomes& outcomes) {
  for (std::size_t operation = 0; operation < wire::operations_count; ++operation) {
    for (std::size_t outcome = 0; outcome < core::outcomes_count; ++outcome) {
      told.add(std::string(wire::operation_facts[operation].name) + "_" +
                   std::string(core::outcome_name(outcome)),
               outcomes.of(operation, outcome));
    }
  }
}

void add_losses(ToldFigures& told, const std::string& what, const core::LossCounts& counts) {
  for (std::size_t cause = 0; cause < counts.size(); ++cause) {
    told.add(what + "_" + std::string(name_of(static_cast<LossCause>(cause))), counts[cause]);
  }
}

/// How many were answered, and how long they waited, all together.
void add_waits(ToldFigures& told, const core::Tallies& tallies) {
  for (std::size_t kind = 0; kind < tallies.waits.size(); ++kind) {
    const core::WaitTimes& times = tallies.waits[kind];
    std::uint64_t count = 0;
    for (std::size_t range = 0; range <= core::wait_bounds.size(); ++range) {
      count += times.count(range);
    }
    const std::string name = "waited_" + std::string(core::wait_kind_names[kind]);
    told.add(name, count);
    told.add(name + "_us", times.sum_us());
  }
}

}  // namespace

void CoreRunner::tell_figures() {
  const core::Report report = engine().inspector().report();
  const core::Tallies& tallies = report.tallies;
  ToldFigures told(line("figures"));
  add_operations(told, tallies.outcomes);
  for (std::size_t kind = 0; kind < report.guest_requests.size(); ++kind) {
    told.add("guest_" + std::string(core::guest_request_names[kind]), report.guest_requests[kind]);
  }
  add_losses(told, "session", tallies.sessions_ended);
  add_losses(told, "rank", tallies.ranks_lost);
  for (std::size_t limit = 0; limit < core::limits_count; ++limit) {
    told.add("refused_" + std::string(core::limit_names[limit]), tallies.refusals.of(limit));
  }
  add_waits(told, tallies);
  told.add("groups_formed", report.group_states.formed);
  told.add("groups_broken", report.group_states.broken);
  told.add("epochs_formed", report.epochs_formed);
  told.add("epochs_regrouped", tallies.epochs_regrouped);
  told.add("epochs_broken", tallies.epochs_broken);
  told.add("rounds_undecided", report.rounds_undecided);
  told.add("oldest_round_us", report.oldest_round);
  told.add("oldest_wait_us", report.oldest_wait);
  told.add("oldest_forming_us", report.oldest_forming);
  told.add("oldest_broken_us", report.oldest_broken);
  told.add("draining", report.is_draining ? 1U : 0U);
  told.add("paused_us", report.paused);
}

}  // namespace muster::script
