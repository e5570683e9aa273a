#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "board.h"
#include "land.h"
#include "launch/job_events.h"
#include "wire.h"

namespace muster::sim::job {

/// A launcher's part of the board: the requests of tools/musterrun/board.cpp, one by one.
class BoardRim {
 public:
  struct Ears {
    std::function<void(const launch::Event&)> hear;
    std::function<void(std::function<void()>)> take;  ///< when the launcher runs
  };
  BoardRim(Land& land, std::size_t who, launch::Node self, Ears ears);

  void open();
  void watch_nodes(launch::Watch watch);
  void await_plan(int attempt);
  void await_verdict(int attempt);
  void publish(const launch::Plan& plan);
  void publish(int attempt, const launch::Verdict& verdict);
  void publish(const launch::Ending& ending);
  void count_success(int attempt);
  void unregister();
  void publish_master(int attempt);
  void await_master(int attempt, std::function<void()> handler);
  void begin(const launch::Plan& plan, int node_rank);
  void end_attempt();
  void leave(std::function<void()> handler);

  /// The process is over, and says so.
  void say_goodbye();
  /// The process is over.
  void close() { is_closed_ = true; }
  void cut(Duration duration) { wire_.cut(duration); }
  bool has_reordered() const { return wire_.has_reordered(); }
  /// Nothing has come of the launcher for too long.
  void end_session() { land_.board.end(session_); }
  bool is_over() const { return session_.is_over; }
  void lose();
  const std::string& run() const { return run_; }

 private:
  std::string own(const std::string& key) const { return "job/" + run_ + "/" + key; }

  std::string closed_run() const { return run_ + ".over"; }

  /// `request` is done at the server when it arrives, and `then` here with its result.
  template <class Request, class Then>
  void ask(Request request, Then then) {
    const std::uint64_t number = ++requests_;
    wire_.up([this, number, request, then] {
      if (!reaches(number)) return;
      answer(number, [then, result = request()] { then(result); });
    });
  }
  bool reaches(std::uint64_t request);
  void answer(std::uint64_t request, std::function<void()> then);
  void await(const std::string& key, Board::Answer handler);
  void set_once(const std::string& key, const std::string& value, Published what);
  void enter();
  void enter_after(const std::string& found);
  std::string own_run() const;
  void knock(const std::string& found);
  void answer_knocks();
  void enter_later();
  void register_self();
  void confirm();
  void enter_anew();
  void hold_run(std::function<void(bool)> then);
  void keep_run();
  void later(Duration delay, std::function<void()> then);
  void look();
  void tell_nodes(const std::vector<std::pair<std::string, std::string>>& found);
  void await_next_node();
  void watch_forming(const launch::Plan& plan);
  void call_roll(const launch::Plan& plan, const std::set<std::string>& there);
  bool is_forming(int attempt) const { return attempt == attempt_ && group_.empty(); }
  void hear(int attempt, const GroupNews& news);
  bool is_empty();
  bool change_run(const std::string& from, const std::string& to);
  void close_run(std::function<void()> then);
  void remove_keys(std::function<void()> then);

  Land& land_;
  const std::size_t who_;
  launch::Node self_;
  Ears ears_;
  Wire wire_;
  Session session_;
  std::uint64_t requests_ = 0;
  std::string run_;
  int attempt_ = -1;
  std::string group_;  ///< that was formed
  bool watches_ = false;
  bool is_looking_ = false;
  std::uint64_t looks_ = 0;
  bool is_leaving_ = false;
  bool is_closed_ = false;
  base::Instant opened_{};
  bool has_told_of_waiting_ = false;
  std::size_t entries_ = 0;  ///< into runs of other names
  std::map<std::string, launch::Node> known_;
  std::uint64_t awaited_ = 0;
};

}  // namespace muster::sim::job
