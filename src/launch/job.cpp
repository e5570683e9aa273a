#include "launch/job.h"

#include <algorithm>
#include <utility>

#include "launch/signal_names.h"

namespace muster::launch {

namespace {

PublishVerdict departure_of(const Plan& plan, int node_rank, int signal) {
  const Node& node = plan.nodes[static_cast<std::size_t>(node_rank)];
  Verdict verdict;
  verdict.kind = Verdict::Kind::node_left;
  verdict.exit_code = 128 + signal;
  verdict.nodes.push_back(node.number);
  verdict.text =
      "node " + text_of(node, node_rank) + " was told to end by " + name_of_signal(signal);
  return {plan.attempt, std::move(verdict)};
}

}  // namespace

Job::Job(JobOptions options, Instant now)
    : options_(std::move(options)), roster_(now), leadership_(options_) {}

std::vector<Effect> Job::on(const Event& event, Instant now) {
  effects_.clear();
  if (phase_ != Phase::over) std::visit([&](const auto& each) { handle(each, now); }, event);
  return std::exchange(effects_, {});
}

void Job::handle(const Registered& event, Instant now) {
  number_ = event.number;
  effects_.emplace_back(AwaitPlan{0});
  await_nodes(now);
}

void Job::handle(const NodesSeen& event, Instant now) {
  const bool may_leave = phase_ == Phase::joining && signal_ == 0 && number_;
  const Node* const first =
      may_leave ? roster_.contradicting(event.nodes, *number_, options_, now) : nullptr;
  if (first != nullptr) {
    say(Importance::failure, "this node was told " + options_.self.terms + ", and " +
                                 list_of({*first}) + ", which came first, " + first->terms +
                                 ": all nodes of a job are told the same");
    effects_.emplace_back(Unregister{});
    return finish(2);
  }
  roster_.see(event.nodes, now);
  const bool waits = phase_ == Phase::joining && (!plan_ || verdict_);
  if (auto text = waits ? roster_.progress(options_, now) : std::nullopt)
    say(Importance::notice, *std::move(text));
  // Of an attempt without this launcher, whose own launchers may all be gone.
  const bool judges = plan_ && !verdict_ && !node_rank_ && number_ && roster_.is_first(*number_);
  if (const auto missing = judges ? roster_.missing_of(*plan_) : std::vector<int>();
      !missing.empty())
    handle(NodesLost{plan_->attempt, missing, "it is gone"}, now);
  decide(now);
}

void Job::handle(const PlanSeen& event, Instant now) {
  const Plan& plan = event.plan;
  plan_ = plan;
  waiting_plan_.reset();
  verdict_.reset();
  leadership_.attempt_begins(now);
  node_rank_ = number_ ? plan.rank_of(*number_) : std::nullopt;
  effects_.emplace_back(AwaitVerdict{plan.attempt});
  effects_.emplace_back(AwaitPlan{plan.attempt + 1});
  const std::string size = "world size " + std::to_string(plan.world_size()) + " on " +
                           std::to_string(plan.nodes.size()) +
                           (plan.nodes.size() == 1 ? " node" : " nodes");
  if (plan.attempt > 0) {
    say(Importance::notice, "attempt " + std::to_string(plan.attempt + 1) + ": " + size + "; " +
                                std::to_string(plan.restarts_used) + " of " +
                                std::to_string(options_.max_restarts) + " restarts used");
  } else {
    say(Importance::detail, size);
  }
  if (signal_ != 0) {  // who made the plan did not know of that
    if (node_rank_) effects_.push_back(departure_of(plan, *node_rank_, signal_));
    return;
  }
  if (!node_rank_) {
    say(Importance::notice,
        "this node waits: the job runs on " + std::to_string(plan.nodes.size()) + " others");
    if (phase_ == Phase::running) end_ranks();
    return await_nodes(now);
  }
  const bool may_grow = static_cast<int>(plan.nodes.size()) < options_.nodes_max;
  watch_nodes(options_.scale_up && may_grow ? Watch::on : Watch::off);
  if (phase_ == Phase::running) end_ranks();
  if (phase_ == Phase::ending) {
    waiting_plan_ = plan;
  } else {
    run(plan);
  }
}

void Job::run(Plan plan) {
  phase_ = Phase::running;
  ended_well_.reset();
  running_count_ = options_.self.process_count;
  effects_.emplace_back(StartRanks{std::move(plan), *node_rank_});
}

void Job::handle(const VerdictSeen& event, Instant now) {
  if (!is_of_this_attempt(event.attempt) || verdict_) return;
  verdict_ = event.verdict;
  waiting_plan_.reset();
  const bool is_good = verdict_->kind == Verdict::Kind::succeeded;
  const bool is_own = signal_ != 0 && verdict_->kind == Verdict::Kind::node_left;  // it was said
  if (!is_good && !is_own && !verdict_->text.empty()) {
    const bool is_notice = verdict_->kind == Verdict::Kind::scaled_up;
    say(is_notice ? Importance::notice : Importance::failure, verdict_->text);
  }
  if (phase_ == Phase::running) end_ranks();
  if (signal_ != 0) return;
  if (is_good) {
    effects_.emplace_back(PublishEnding{});
  } else {
    await_nodes(now);
  }
}

void Job::handle(const EndingSeen& event, Instant) {
  const bool is_own = signal_ != 0;  // it was said
  if (!event.ending.text.empty() && !is_own) say(Importance::failure, event.ending.text);
  ending_ = event.ending;
  waiting_plan_.reset();
  if (phase_ == Phase::running) end_ranks();
  if (phase_ == Phase::joining) finish(ending_->exit_code);
}

void Job::handle(const SuccessCounted& event, Instant) {
  if (!is_of_this_attempt(event.attempt) || verdict_) return;
  if (event.count < static_cast<int>(plan_->nodes.size())) {
    say(Importance::detail, "the ranks of this node have ended well; other nodes still run");
    return;
  }
  give_verdict({});
}

void Job::handle(const NodesLost& event, Instant) {
  if (!is_of_this_attempt(event.attempt) || verdict_) return;
  Verdict verdict;
  verdict.kind = Verdict::Kind::nodes_lost;
  verdict.exit_code = 1;
  for (const int rank : event.node_ranks) {
    if (rank < 0 || rank >= static_cast<int>(plan_->nodes.size())) continue;
    const Node& node = plan_->nodes[static_cast<std::size_t>(rank)];
    verdict.nodes.push_back(node.number);
    verdict.text += (verdict.text.empty() ? "node " : ", node ") + text_of(node, rank);
  }
  if (verdict.nodes.empty()) return;
  verdict.text += ": " + event.why;
  give_verdict(std::move(verdict));
}

void Job::handle(const BoardLost& event, Instant) {
  if (ending_) return;
  const bool has_succeeded = verdict_ && verdict_->kind == Verdict::Kind::succeeded;
  if (!has_succeeded) say(Importance::failure, event.why);
  ending_ = Ending{has_succeeded ? 0 : event.exit_code, {}};
  waiting_plan_.reset();
  if (phase_ == Phase::running) end_ranks();
  if (phase_ == Phase::joining) finish(ending_->exit_code);
}

void Job::handle(const RankEnded& event, Instant now) {
  if (!is_of_this_attempt(event.attempt) || phase_ != Phase::running) return;
  --running_count_;
  if (event.exit_code == 0) {
    if (!ended_well_) ended_well_ = now;
    if (running_count_ == 0) effects_.emplace_back(CountSuccess{event.attempt});
    return;
  }
  const Node& node = plan_->nodes[static_cast<std::size_t>(*node_rank_)];
  Verdict verdict;
  verdict.kind = Verdict::Kind::rank_failed;
  verdict.exit_code = event.exit_code;
  verdict.text = "rank " + std::to_string(plan_->base_rank_of(*node_rank_) + event.local_rank) +
                 " (local rank " + std::to_string(event.local_rank) + " of node " +
                 std::to_string(*node_rank_) + ", host " + node.host + ", pid " +
                 std::to_string(event.pid) + ") " + event.how;
  if (!event.output.empty()) verdict.text += "; its last output:\n" + event.output;
  give_verdict(std::move(verdict));
}

void Job::handle(const NotStarted& event, Instant) {
  if (!is_of_this_attempt(event.attempt) || phase_ != Phase::running) return;
  Verdict verdict;
  verdict.kind = Verdict::Kind::rank_failed;
  verdict.exit_code = event.exit_code;
  verdict.text = "node " +
                 text_of(plan_->nodes[static_cast<std::size_t>(*node_rank_)], *node_rank_) +
                 " cannot start its ranks: " + event.why;
  verdict.is_final = true;
  give_verdict(std::move(verdict));
}

void Job::handle(const RanksGone& event, Instant now) {
  if (phase_ != Phase::ending) return;
  phase_ = Phase::joining;
  if (!event.stuck.empty())
    say(Importance::failure, "these processes cannot be killed: " + event.stuck);
  if (signal_ != 0) return finish(128 + signal_);
  if (ending_) return finish(ending_->exit_code);
  if (waiting_plan_) return run(*std::exchange(waiting_plan_, std::nullopt));
  decide(now);
}

void Job::handle(const Signalled& event, Instant) {
  if (signal_ != 0) {
    if (phase_ == Phase::ending) effects_.emplace_back(EndRanks{Duration::zero(), true});
    return;
  }
  signal_ = event.number;
  say(Importance::failure,
      "this node, " + list_of({options_.self}) + ", was told to end by " + name_of_signal(signal_));
  waiting_plan_.reset();
  if (event.hosts_place && !ending_) {
    effects_.emplace_back(
        PublishEnding{{128 + signal_, "the job ends: the node that hosts its meeting place, " +
                                          list_of({options_.self}) + ", was told to end by " +
                                          name_of_signal(signal_)}});
  } else if (plan_ && node_rank_ && !verdict_) {
    effects_.push_back(departure_of(*plan_, *node_rank_, signal_));
  }
  if (phase_ == Phase::running) {
    effects_.emplace_back(ForwardSignal{signal_});
    phase_ = Phase::ending;
    effects_.emplace_back(EndRanks{options_.shutdown_timeout, true});
  }
  effects_.emplace_back(Unregister{});
  if (phase_ == Phase::joining) finish(128 + signal_);
}

void Job::handle(const Advance&, Instant now) {
  if (phase_ == Phase::running && options_.exit_grace && ended_well_ && running_count_ > 0 &&
      now - *ended_well_ >= *options_.exit_grace && !verdict_) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::rank_failed;
    verdict.exit_code = 1;
    verdict.text = std::to_string(running_count_) + " ranks of node " +
                   text_of(plan_->nodes[static_cast<std::size_t>(*node_rank_)], *node_rank_) +
                   " still run, after others have ended well and --exit-grace has passed";
    ended_well_.reset();
    return give_verdict(std::move(verdict));
  }
}

Instant Job::next_deadline() const {
  const bool waits = phase_ == Phase::running && options_.exit_grace && ended_well_ &&
                     running_count_ > 0 && !verdict_;
  return waits ? *ended_well_ + *options_.exit_grace : base::far_future;
}

/// Others may have come, or gone: they are looked for anew.
void Job::await_nodes(Instant now) {
  roster_.begin_to_wait(now);
  watch_nodes(Watch::on);
}

void Job::watch_nodes(Watch watch) {
  if (watch_ == watch) return;
  watch_ = watch;
  effects_.emplace_back(WatchNodes{watch});
}

void Job::decide(Instant now) {
  const bool leads = number_ && signal_ == 0 && !ending_ && roster_.is_first(*number_);
  if (!leads) return;
  const Situation situation{plan_ ? &*plan_ : nullptr, verdict_ ? &*verdict_ : nullptr,
                            node_rank_.has_value() && phase_ == Phase::running};
  auto decision = leadership_.decide(situation, roster_, now);
  if (!decision) return;
  const bool ends_attempt = std::holds_alternative<PublishVerdict>(*decision);
  effects_.push_back(*std::move(decision));
  if (ends_attempt && phase_ == Phase::running) end_ranks();
}

/// The ranks end at once, whoever's verdict counts in the end.
void Job::give_verdict(Verdict verdict) {
  effects_.emplace_back(PublishVerdict{plan_->attempt, std::move(verdict)});
  if (phase_ == Phase::running) end_ranks();
}

void Job::end_ranks() {
  phase_ = Phase::ending;
  effects_.emplace_back(EndRanks{options_.shutdown_timeout, false});
}

void Job::finish(int exit_code) {
  phase_ = Phase::over;
  effects_.emplace_back(Finish{exit_code});
}

void Job::say(Importance importance, std::string text) {
  effects_.emplace_back(Say{importance, std::move(text)});
}

}  // namespace muster::launch
