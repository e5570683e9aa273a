#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "launch/job.h"
#include "muster/io_thread.h"
#include "muster/store_options.h"

namespace musterrun {

/// Where the launchers of a job meet: keys of a Muster server, in the namespace "musterrun".
/// JOB/run has a name that was drawn when the first of them came; it is gone soon after the last
/// one, and another one while that takes its keys back. Who finds that its run has lost the name
/// when it has registered looks for one anew. All other keys begin with JOB/RUN, so what a run has
/// left that was killed is never read:
///
///     node/K        a launcher, as long as it lives; K is its number
///     knock         the name that a newcomer has drawn; a launcher that lives takes it
///     alive/NAME    the answer to that: the newcomer enters the run
///     plan/A        the ranks of attempt A
///     master/A      MASTER_ADDR and MASTER_PORT of attempt A, and "tcpstore" if there is one
///     verdict/A     how attempt A has ended
///     ending        how the job has
///
/// The launchers of an attempt are a group, from which each hears at once of one that dies.
///
/// threads  that of the context; no call blocks
class Board {
 public:
  struct Options {
    std::string address;
    std::string job;  ///< its name, which no other one has at the same server and time
    std::string run;  ///< a name that nobody else has, for the case that this launcher is the first
    muster::launch::Node self;
    muster::Duration connect_timeout{};
    muster::Duration form_timeout{};
    std::string label;
    std::function<void(std::string text)> on_notice;  ///< hears what people are to know
    std::function<void()> on_connected;
  };

  /// io_thread  is served by the context
  /// on_event   hears what `launch::Job` is to hear
  Board(asio::io_context& context, std::shared_ptr<muster::IoThread> io_thread, Options options,
        std::function<void(const muster::launch::Event&)> on_event);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// Connects and registers.
  void open();
  void watch_nodes(muster::launch::Watch watch);
  void await_plan(int attempt);
  void await_verdict(int attempt);
  void publish(const muster::launch::Plan& plan);
  void publish(int attempt, const muster::launch::Verdict& verdict);
  void publish(const muster::launch::Ending& ending);
  void count_success(int attempt);
  void unregister();

  void publish_master(int attempt, const std::string& address);
  void await_master(int attempt, std::function<void(const std::string& address)> handler);
  /// Forms the group of the attempt's launchers.
  void begin(const muster::launch::Plan& plan, int node_rank);
  /// The attempt is over: its group ends, and the keys of its ranks go.
  void end_attempt();

  /// Whether other launchers still need this one's server, to read how the job has ended.
  enum class Leave { now, last };
  /// Takes back what belongs to the job, if this is the last of its launchers, and then calls
  /// `handler`: after a second at the latest, or, as the last, five.
  void leave(Leave when, std::function<void()> handler);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The namespace of the ranks of an attempt.
std::string namespace_of_attempt(const std::string& job, int attempt);

}  // namespace musterrun
