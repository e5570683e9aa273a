#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/steady_timer.hpp>

#include "board.h"
#include "muster/process_group.h"
#include "muster/store.h"

namespace musterrun {

constexpr muster::Duration short_time = std::chrono::seconds(30);
constexpr muster::Duration long_time = std::chrono::hours(24 * 20);

/// A key of a run.
std::string key_of(std::string_view what, int attempt);
/// Keys of nodes are listed in the order of their numbers.
std::string key_of_node(std::uint64_t number);

/// What a board has; it lives as long as a call is pending.
struct Board::State : std::enable_shared_from_this<State> {
  using Event = muster::launch::Event;
  using Node = muster::launch::Node;
  using Plan = muster::launch::Plan;
  using KeysHandler = std::function<void(std::vector<std::string> keys)>;
  /// The attempt that began last.
  struct CurrentAttempt {
    int number = -1;
    std::optional<muster::StatelessProcessGroup> group;  ///< of the launchers
    std::optional<muster::Store> held;                   ///< in the namespace of the ranks
  };

  /// Until this launcher is in a run.
  struct Newcomer {
    std::chrono::steady_clock::time_point opened_at;
    std::string found_run;  ///< in which no launcher has answered yet
    std::chrono::steady_clock::time_point found_at;
    bool has_told_of_waiting = false;
  };

  State(asio::io_context& its_context, std::shared_ptr<muster::IoThread> its_thread,
        Options its_options, std::function<void(const Event&)> handler)
      : context(its_context),
        io_thread(std::move(its_thread)),
        options(std::move(its_options)),
        on_event(std::move(handler)),
        own_run(options.run),
        next_look(its_context),
        next_touch(its_context),
        next_roll_call(its_context),
        patience(its_context) {}

  void tell(const Event& event) {
    if (!is_closed) on_event(event);
  }
  std::string own(const std::string& key) const { return options.job + "/" + run + "/" + key; }
  std::string key_of_run() const { return options.job + "/run"; }
  /// What `key_of_run` has while the last launcher of the run takes its keys back.
  std::string closed_run() const { return run + ".over"; }
  bool is_forming(int of_attempt) const {
    return !is_closed && attempt.number == of_attempt && !attempt.group;
  }

  // The run of the job that it is in, board_run.cpp.

  /// Enters the run of the job in which launchers are, or begins one. Of a run whose launchers were
  /// all killed nothing counts; its key is gone soon.
  void enter();
  /// If a launcher is in that run. Else it waits until that is over, as long as for nodes, and as
  /// long as the name of a run stays whose launchers were killed.
  void enter_after(const std::string& found);
  /// Enters the run when one of its launchers answers. Keys of launchers that were killed stay for
  /// the server's grace.
  void knock(const std::string& found);
  void enter_run(const std::string& found);
  /// As long as this launcher is registered. One of them takes each knock.
  void answer_knocks();
  void enter_later();
  /// Looks whether the run is still the job's, which is so for its lifetime then.
  ///
  /// then  hears true; false: it is over
  void hold_run(std::function<void(bool)> then);
  /// Each launcher keeps the run's key.
  void keep_run();
  void register_self();
  /// The last launcher of the run may have left it meanwhile, and taken back what is in it.
  void confirm();
  void enter_anew();
  /// Closes the run, so that nobody enters it while its keys go. Whoever has meanwhile goes on.
  void leave(Leave when, std::function<void()> finish);
  void close_run(std::function<void()> finish);
  void change_run(const std::string& from, const std::string& to, std::function<void()> otherwise,
                  std::function<void()> then);
  /// All of the job's.
  void remove_keys(std::function<void()> finish);

  // What that has, board.cpp.

  void lose(const muster::Error& error);
  void not_reached(const muster::Error& error);
  /// Calls back with the value when the key is there, however long that takes.
  void await(const std::string& key, std::function<void(const std::string&)> handler);
  /// What was set first stays.
  void publish(const std::string& key, const std::string& value);
  void look();
  void list_nodes(KeysHandler handler, std::uint64_t cursor = 0,
                  std::vector<std::string> before = {});
  /// Until the group of the attempt's launchers is there, which tells of those that are lost, it
  /// looks whether all of them still are.
  void watch_forming(const Plan& plan);
  void call_roll(const Plan& plan, const std::vector<std::string>& keys);
  void read_nodes(std::vector<std::string> keys);
  /// Looks at once when another one comes.
  void await_next_node();
  void tell_nodes(const std::vector<std::string>& keys);
  /// The namespace of the attempt's ranks is removed with the last session of a rank or launcher,
  /// also if all of them are killed.
  void hold_namespace();
  void lose_nodes(int of_attempt, const muster::Error& error);

  asio::io_context& context;
  const std::shared_ptr<muster::IoThread> io_thread;
  Options options;
  std::function<void(const Event&)> on_event;
  std::optional<muster::Store> store;
  CurrentAttempt attempt;
  bool watches = false;
  bool is_looking = false;
  bool is_closed = false;
  Newcomer newcomer;
  std::map<std::string, Node> known;
  std::uint64_t awaited = 0;  ///< the number of the next node that is waited for
  std::string own_run;        ///< the name of a run that this launcher would begin
  std::string run;            ///< the one that it is in
  asio::steady_timer next_look;
  asio::steady_timer next_touch;
  asio::steady_timer next_roll_call;
  asio::steady_timer patience;
};

}  // namespace musterrun
