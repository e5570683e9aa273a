#include "ranks.h"

#include <utility>
#include <vector>

namespace muster::sim::job {
namespace {

using namespace std::chrono_literals;

constexpr int killed = 128 + 9;
constexpr int terminate = 15;

}  // namespace

Ranks::Ranks(Land& land, std::size_t who, std::function<void(const Report&)> hear)
    : land_(land),
      who_(who),
      report_(std::move(hear)),
      wire_(land.scheduler, land.random, Duration(2ms)) {}

void Ranks::start(int attempt, int local_rank) {
  wire_.up([this, attempt, local_rank] { begin(attempt, local_rank); });
}

void Ranks::forward(int signal) {
  wire_.up([this, signal] {
    for (const auto& [local_rank, rank] : ranks_) tell_to_end(local_rank, signal);
  });
}

void Ranks::end(Duration grace, bool were_told) {
  wire_.up([this, grace, were_told] { begin_to_end(grace, were_told); });
}

void Ranks::begin(int attempt, int local_rank) {
  if (is_alone_ || has_vanished_) return;
  const Story& story = land_.story;
  const auto one_in = [&](std::uint64_t count) {
    return count != 0 && !land_.is_calm && land_.random.one_in(count);
  };
  if (one_in(story.not_there)) {
    const int exit_code = land_.random.one_in(2) ? 127 : 126;
    land_.judge.rank_not_started(who_, attempt, exit_code);
    return report({Report::Kind::not_started, local_rank, exit_code, false});
  }
  Rank rank;
  rank.attempt = attempt;
  rank.number = ++started_;
  rank.exit_code = one_in(story.fails) ? 1 + static_cast<int>(land_.random.below(4)) : 0;
  rank.hangs = one_in(story.hangs);
  rank.disobeys = one_in(story.disobeys);
  rank.is_stuck = one_in(story.is_stuck);
  land_.judge.rank_starts(who_, attempt, local_rank);
  ranks_[local_rank] = rank;
  if (!rank.hangs) end_after(local_rank, land_.random.between(1ms, story.rank_max), rank.exit_code);
}

void Ranks::end_after(int local_rank, Duration delay, int exit_code) {
  land_.scheduler.after(delay, std::function<void()>([this, local_rank, exit_code,
                                                      number = ranks_.at(local_rank).number] {
                          const auto rank = ranks_.find(local_rank);
                          if (rank != ranks_.end() && rank->second.number == number)
                            end_one(local_rank, exit_code);
                        }));
}

void Ranks::end_one(int local_rank, int exit_code) {
  land_.judge.rank_ends(who_, ranks_.at(local_rank).attempt, local_rank, exit_code);
  ranks_.erase(local_rank);
  report({Report::Kind::ended, local_rank, exit_code, false});
  look_at_left();
}

void Ranks::tell_to_end(int local_rank, int signal) {
  const Rank& rank = ranks_.at(local_rank);
  if (rank.disobeys || rank.is_stuck) return;
  const bool ends_well = land_.random.one_in(8);
  end_after(local_rank, land_.random.between(0s, land_.random.one_in(2) ? 5ms : 800ms),
            ends_well ? 0 : 128 + signal);
}

void Ranks::begin_to_end(Duration grace, bool were_told) {
  if (has_vanished_) return;
  const Instant at = land_.scheduler.now() + grace;
  const bool is_first = !std::exchange(is_ending_, true);
  if (is_first) ++endings_;
  if (is_first || at < kill_at_) {
    kill_at_ = at;
    land_.scheduler.at(at, [this, number = endings_] {
      if (is_ending_ && number == endings_ && land_.scheduler.now() >= kill_at_) kill_all();
    });
  }
  if (is_first && !were_told)
    for (const auto& [local_rank, rank] : ranks_) tell_to_end(local_rank, terminate);
  look_at_left();
}

void Ranks::kill_all() {
  std::vector<int> mortal;
  for (const auto& [local_rank, rank] : ranks_)
    if (!rank.is_stuck) mortal.push_back(local_rank);
  for (const int local_rank : mortal) {
    land_.judge.count(Count::killed_ranks);
    end_one(local_rank, killed);
  }
  if (!is_ending_) return;
  land_.scheduler.after(5s, [this, number = endings_] {
    if (!is_ending_ || number != endings_) return;
    for (const auto& [local_rank, rank] : ranks_)
      land_.judge.rank_is_stuck(who_, rank.attempt, local_rank);
    tell_gone(true);
  });
}

void Ranks::look_at_left() {
  if (is_ending_ && ranks_.empty()) tell_gone(false);
}

void Ranks::tell_gone(bool is_stuck) {
  is_ending_ = false;
  ranks_.clear();
  report({Report::Kind::gone, 0, 0, is_stuck});
}

void Ranks::report(const Report& report) {
  if (is_alone_) return;
  wire_.down([this, report] { report_(report); });
}

void Ranks::lose_launcher() {
  is_alone_ = true;
  begin_to_end(land_.story.options.shutdown_timeout, false);
}

void Ranks::vanish() {
  is_alone_ = true;
  has_vanished_ = true;
  is_ending_ = false;
  for (const auto& [local_rank, rank] : ranks_)
    land_.judge.rank_ends(who_, rank.attempt, local_rank, killed);
  ranks_.clear();
}

void Ranks::kill_one() {
  if (ranks_.empty()) return;
  const auto rank =
      std::next(ranks_.begin(), static_cast<std::ptrdiff_t>(land_.random.below(ranks_.size())));
  if (!rank->second.is_stuck) end_one(rank->first, killed);
}

void Ranks::release() {
  for (auto& [local_rank, rank] : ranks_)
    if (std::exchange(rank.hangs, false)) end_after(local_rank, 1s, killed);
}

}  // namespace muster::sim::job
