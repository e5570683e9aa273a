#include "launcher.h"

#include <utility>

namespace muster::sim::job {
namespace {

using namespace std::chrono_literals;

launch::JobOptions options_of(const Land& land, std::size_t who, std::size_t slot) {
  launch::JobOptions options = land.story.options;
  options.self.host = "h" + std::to_string(slot);
  options.self.pid = static_cast<std::int64_t>(100 + who);
  options.self.process_count = land.story.slots[slot].process_count;
  options.self.wanted_rank = land.story.slots[slot].wanted_rank;
  return options;
}

/// What an event or an effect is about, for the hash.
template <class What>
std::uint64_t digest_of(const What& what) {
  return std::visit(
      [&](const auto& each) {
        std::uint64_t attempt = 0;
        if constexpr (requires { each.attempt; })
          attempt = static_cast<std::uint64_t>(each.attempt);
        if constexpr (requires { each.plan; }) attempt = 7 + each.plan.nodes.size();
        return what.index() * 1000 + attempt;
      },
      what);
}

std::string in_words(const launch::Plan& plan) {
  std::string text = "plan " + std::to_string(plan.attempt) + ", used " +
                     std::to_string(plan.restarts_used) + ", numbers";
  for (const launch::Node& node : plan.nodes) text += " " + std::to_string(node.number);
  return text;
}

std::string in_words(const launch::Verdict& verdict) {
  return std::to_string(static_cast<int>(verdict.kind)) + " with " +
         std::to_string(verdict.exit_code) + ": " + verdict.text;
}

/// Of what is worth a line: all but what only repeats.
template <class What>
std::string line_of(const What& what) {
  const auto verdict_on = [](const auto& each) {
    return "verdict on " + std::to_string(each.attempt) + ": " + in_words(each.verdict);
  };
  return std::visit(
      [&](const auto& each) -> std::string {
        if constexpr (requires { each.verdict; }) return verdict_on(each);
        if constexpr (requires { each.plan; }) return in_words(each.plan);
        if constexpr (requires { each.ending; })
          return "ending " + std::to_string(each.ending.exit_code) + " " + each.ending.text;
        if constexpr (requires { each.nodes; }) {
          std::string text = "nodes";
          for (const auto& node : each.nodes) text += " " + std::to_string(node.number);
          return text;
        }
        if constexpr (requires {
                        each.local_rank;
                        each.exit_code;
                      })
          return "rank " + std::to_string(each.local_rank) + " of attempt " +
                 std::to_string(each.attempt) + " ends with " + std::to_string(each.exit_code);
        if constexpr (requires { each.exit_code; })
          return "exit code " + std::to_string(each.exit_code);
        if constexpr (requires { each.text; }) return each.text;
        if constexpr (requires { each.count; }) return "count " + std::to_string(each.count);
        if constexpr (requires { each.attempt; }) return "attempt " + std::to_string(each.attempt);
        if constexpr (requires { each.number; }) return std::to_string(each.number);
        return {};
      },
      what);
}

constexpr const char* event_names[] = {"registered",  "nodes seen",  "plan seen",  "verdict seen",
                                       "ending seen", "succeeded",   "nodes lost", "board lost",
                                       "rank ended",  "not started", "ranks gone", "signalled",
                                       "advance"};
constexpr const char* effect_names[] = {
    "watch nodes",    "publish plan",  "await plan", "await verdict", "publish verdict",
    "publish ending", "count success", "unregister", "start ranks",   "forward signal",
    "end ranks",      "say",           "finish"};

}  // namespace

Launcher::Launcher(Land& land, std::size_t who, std::size_t slot)
    : land_(land),
      who_(who),
      slot_(slot),
      name_("L" + std::to_string(who)),
      job_(options_of(land, who, slot), land.scheduler.now()),
      board_(land, who, options_of(land, who, slot).self,
             {[this](const launch::Event& event) { handle(event); },
              [this](Deed deed) { take(Source::board, std::move(deed)); }}),
      ranks_(land, who, [this](const Ranks::Report& report) {
        take(Source::ranks, [this, report] { hear(report); });
      }) {}

void Launcher::begin() {
  land_.judge.comes(who_, slot_);
  board_.open();
}

/// At once, if it runs.
void Launcher::take(Source source, Deed deed) {
  if (!is_alive()) return;
  if (land_.scheduler.now() >= runs_again_) return deed();
  inbox_[static_cast<std::size_t>(source)].push_back(std::move(deed));
}

/// What has come meanwhile is done, from whichever source first.
void Launcher::run_again() {
  if (land_.scheduler.now() < runs_again_) return;
  for (;;) {
    std::vector<std::deque<Deed>*> full;
    for (auto& source : inbox_)
      if (!source.empty()) full.push_back(&source);
    if (full.empty() || !is_alive()) return;
    auto& source = *full[land_.random.below(full.size())];
    const Deed deed = std::move(source.front());
    source.pop_front();
    deed();
  }
}

void Launcher::handle(const launch::Event& event) {
  const Instant now = land_.scheduler.now();
  land_.trace.note(now, name_, digest_of(event), [&] {
    return std::string("< ") + event_names[event.index()] + " " + line_of(event);
  });
  land_.judge.hears(who_, event);
  for (const launch::Effect& effect : job_.on(event, now)) {
    land_.trace.note(now, name_, digest_of(effect), [&] {
      return std::string("> ") + effect_names[effect.index()] + " " + line_of(effect);
    });
    land_.judge.does(who_, effect);
    std::visit([this](const auto& each) { apply(each); }, effect);
  }
  const Instant next = job_.next_deadline();
  if (next == base::far_future || next == std::exchange(rings_at_, next)) return;
  land_.scheduler.at(next, [this, next] {
    take(Source::timer, [this, next] {
      if (job_.next_deadline() == next) handle(launch::Advance{});
    });
  });
}

void Launcher::hear(const Ranks::Report& report) {
  switch (report.kind) {
    case Ranks::Report::Kind::not_started:
      return handle(launch::NotStarted{attempt_, report.exit_code, "why"});
    case Ranks::Report::Kind::ended: {
      launch::RankEnded ended;
      ended.attempt = attempt_;
      ended.local_rank = report.local_rank;
      ended.exit_code = report.exit_code;
      ended.how = "exited with " + std::to_string(report.exit_code);
      return handle(ended);
    }
    case Ranks::Report::Kind::gone:
      board_.end_attempt();
      return handle(launch::RanksGone{report.is_stuck ? "pid 7" : ""});
  }
}

void Launcher::apply(const launch::EndRanks& effect) {
  may_start_ = false;
  ranks_.end(effect.grace, effect.were_told);
}

void Launcher::apply(const launch::StartRanks& effect) {
  attempt_ = effect.plan.attempt;
  may_start_ = true;
  board_.begin(effect.plan, effect.node_rank);
  if (effect.node_rank == 0) {
    if (land_.story.not_there != 0 && land_.random.one_in(16)) {
      land_.judge.rank_not_started(who_, attempt_, 1);
      return handle(launch::NotStarted{attempt_, 1, "MASTER_PORT is taken"});
    }
    if (effect.plan.nodes.size() > 1) board_.publish_master(attempt_);
    return start_ranks(attempt_);
  }
  board_.await_master(attempt_, [this, attempt = attempt_] {
    if (attempt == attempt_ && may_start_) return start_ranks(attempt);
    land_.judge.count(Count::masters_late);
  });
}

void Launcher::start_ranks(int attempt) {
  for (int rank = 0; rank < land_.story.slots[slot_].process_count; ++rank)
    ranks_.start(attempt, rank);
}

void Launcher::apply(const launch::Finish&) {
  board_.leave([this] {
    if (!is_alive()) return;
    has_left_ = true;
    if (board_.has_reordered()) land_.judge.count(Count::reordered);
    land_.judge.leaves(who_);
    board_.say_goodbye();
    is_gone();
  });
}

void Launcher::signal(int number) {
  take(Source::signals, [this, number] { handle(launch::Signalled{number}); });
}

void Launcher::pause(Duration duration) {
  if (!is_alive()) return;
  land_.judge.disturbed(who_, duration);
  runs_again_ = std::max(runs_again_, land_.scheduler.now() + duration);
  land_.scheduler.at(runs_again_, [this] { run_again(); });
  if (duration >= land_.story.session_timeout) end_session_after(land_.story.session_timeout);
}

void Launcher::cut(Duration duration) {
  if (!is_alive()) return;
  const Duration timeout = land_.story.session_timeout;
  land_.judge.disturbed(who_, duration);
  board_.cut(duration);
  if (duration < timeout) return;
  end_session_after(timeout);
  // Its lease runs out: it knows without being told.
  land_.scheduler.after(timeout + land_.random.between(0s, 2s), std::function<void()>([this] {
                          take(Source::board, [this] { board_.lose(); });
                        }));
}

void Launcher::end_session_after(Duration duration) {
  land_.scheduler.after(duration, std::function<void()>([this] {
                          if (board_.is_over() || land_.board.is_dead()) return;
                          land_.judge.session_ends(who_);
                          board_.end_session();
                        }));
}

void Launcher::die() {
  is_dead_ = true;
  land_.judge.dies(who_);
  is_gone();
}

void Launcher::kill() {
  if (!is_alive()) return;
  die();
  board_.close();
  end_session_after(land_.story.grace);
  ranks_.lose_launcher();
}

void Launcher::kill_host() {
  if (!is_alive()) return;
  die();
  board_.close();
  end_session_after(land_.story.session_timeout);
  ranks_.vanish();
}

void Launcher::lose_board() {
  take(Source::board, [this] { board_.lose(); });
}

}  // namespace muster::sim::job
