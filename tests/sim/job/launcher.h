#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>

#include "board_rim.h"
#include "land.h"
#include "launch/job.h"
#include "ranks.h"

namespace muster::sim::job {

/// One `musterrun`: a state machine of the product with an imagined rim, that of
/// tools/musterrun/launcher.cpp.
class Launcher {
 public:
  Launcher(Land& land, std::size_t who, std::size_t slot);

  void begin();
  std::size_t slot() const { return slot_; }
  bool is_alive() const { return !is_dead_ && !has_left_; }

  // What happens to it.
  void signal(int number);
  void pause(Duration duration);
  void cut(Duration duration);
  void kill();
  void kill_host();
  void lose_board();
  Ranks& ranks() { return ranks_; }

  /// It is over, in whatever way.
  std::function<void()> is_gone;

 private:
  /// What comes to it from outside.
  enum class Source : std::uint8_t { board, ranks, signals, timer };
  using Deed = std::function<void()>;

  void take(Source source, Deed deed);
  void run_again();
  void handle(const launch::Event& event);
  void hear(const Ranks::Report& report);
  void end_session_after(Duration duration);
  void die();

  void apply(const launch::WatchNodes& effect) { board_.watch_nodes(effect.watch); }
  void apply(const launch::PublishPlan& effect) { board_.publish(effect.plan); }
  void apply(const launch::AwaitPlan& effect) { board_.await_plan(effect.attempt); }
  void apply(const launch::AwaitVerdict& effect) { board_.await_verdict(effect.attempt); }
  void apply(const launch::PublishVerdict& effect) {
    board_.publish(effect.attempt, effect.verdict);
  }
  void apply(const launch::PublishEnding& effect) { board_.publish(effect.ending); }
  void apply(const launch::CountSuccess& effect) { board_.count_success(effect.attempt); }
  void apply(const launch::Unregister&) { board_.unregister(); }
  void apply(const launch::ForwardSignal& effect) { ranks_.forward(effect.number); }
  void apply(const launch::EndRanks& effect);
  void apply(const launch::Say&) {}
  void apply(const launch::StartRanks& effect);
  void apply(const launch::Finish& effect);
  void start_ranks(int attempt);

  Land& land_;
  const std::size_t who_;
  const std::size_t slot_;
  const std::string name_;
  launch::Job job_;
  BoardRim board_;
  Ranks ranks_;
  std::array<std::deque<Deed>, 4> inbox_;  ///< by source, while it does not run
  Instant runs_again_{};
  Instant rings_at_{};
  int attempt_ = -1;
  bool may_start_ = false;  ///< the ranks of that attempt, when rank 0's address is known
  bool has_left_ = false;
  bool is_dead_ = false;
};

}  // namespace muster::sim::job
