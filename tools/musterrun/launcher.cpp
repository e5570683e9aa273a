#include "launcher.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "agent_store.h"
#include "attempt.h"
#include "base/secret/unshown.h"
#include "board.h"
#include "console.h"
#include "launch/command.h"
#include "launch/exit_status.h"
#include "launch/job.h"
#include "launch/log_names.h"
#include "launch/signal_names.h"
#include "meeting_place.h"
#include "muster/asio.h"

// The rim of `launch::Job`: what happens to processes, keys, signals and timers is told to it, and
// what it answers is done. All of it on one thread, in one io_context, which also serves the Muster
// server of a job on one host.

namespace musterrun {

using namespace muster::launch;
using muster::base::Instant;

namespace {

Instant now() {
  return Instant(std::chrono::duration_cast<muster::Duration>(
      std::chrono::steady_clock::now().time_since_epoch()));
}

std::string name_of_host() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

JobOptions job_options_of(const LauncherSetup& setup) {
  const LaunchOptions& options = setup.options;
  JobOptions job;
  job.self.host = name_of_host();
  job.self.pid = ::getpid();
  job.self.process_count = options.placement.process_count;
  job.self.role = options.role;
  job.max_restarts = options.max_restarts;
  job.join_timeout = options.rendezvous.join_timeout;
  job.last_call = options.rendezvous.last_call;
  job.shutdown_timeout = options.shutdown_timeout;
  job.exit_grace = options.exit_grace;
  if (options.rendezvous.endpoint.empty()) return job;
  job.nodes_min = options.placement.nodes.min;
  job.nodes_max = options.placement.nodes.max;
  job.scale_up = options.scale_up;
  job.self.wanted_rank = options.placement.node_rank;
  job.self.terms = "--nnodes " + std::to_string(job.nodes_min);
  if (job.nodes_max > job.nodes_min) job.self.terms += ":" + std::to_string(job.nodes_max);
  job.self.terms += " and --max-restarts " + std::to_string(job.max_restarts);
  return job;
}

/// As the other nodes are told.
std::string text_of_master(const AttemptPlace& place) {
  return place.master_addr + " " + std::to_string(place.master_port) +
         (place.has_agent_store ? " tcpstore" : "");
}

void read_master(const std::string& text, AttemptPlace& to) {
  std::istringstream words(text);
  std::string store;
  words >> to.master_addr >> to.master_port >> store;
  to.has_agent_store = store == "tcpstore";
}

/// The attempt that begins or runs on this node; without ranks: none does.
struct CurrentAttempt {
  int number = -1;
  bool may_start = false;  ///< the ranks, as soon as rank 0's address is known
  std::optional<Attempt> ranks;
  HeldPort hold;
  std::optional<AgentStore> agent_store;
};

class Launcher {
 public:
  explicit Launcher(LauncherSetup setup)
      : setup_(std::move(setup)),
        files_(setup_.options.output.log_dir.empty() ? setup_.own_folder->path()
                                                     : setup_.options.output.log_dir,
               setup_.job_id, setup_.random),
        no_namespace_(setup_.guardian.problem),
        job_(job_options_of(setup_), now()),
        signals_(context_),
        timer_(context_),
        place_timer_(context_),
        guardian_(
            context_, std::move(setup_.guardian), [this](const Report& report) { hear(report); },
            [this](const std::string& how) { lose_guardian(how); }) {}

  int run() {
    auto loop = muster::AsioLoop::create(context_.get_executor());
    if (!loop) return fail(loop.error().message());
    io_thread_ = loop->io_thread();
    place_.emplace(context_, setup_.options, io_thread_, handlers_of_place());
    if (auto opened = place_->open(); !opened) return fail(opened.error().message());
    await_signals();
    if (!no_namespace_.empty())
      say(Importance::detail, "there is no PID namespace for the ranks: " + no_namespace_);
    open_board();
    tell_of_place(std::chrono::seconds(3));
    context_.run();
    signals_.clear();  // one ends this process, which may wait below for who reads
    guardian_.close();
    current_.ranks.reset();
    current_.agent_store.reset();
    board_.reset();
    place_.reset();
    io_thread_.reset();
    loop->stop();
    const auto patience = is_told_to_end_ ? Console::Patience::brief : Console::Patience::endless;
    const bool is_written = console_.finish(patience);
    if (exit_code_ == 0 && console_.has_lost()) exit_code_ = 1;
    if (!is_written) ::_exit(exit_code_);
    return exit_code_;
  }

 private:
  void open_board() {
    Board::Options options;
    options.address = place_->address();
    options.job = setup_.job_id;
    options.run = setup_.random;
    options.self = job_options_of(setup_).self;
    options.connect_timeout = setup_.options.rendezvous.join_timeout;
    options.form_timeout = std::chrono::seconds(60);
    options.label = "musterrun";
    options.on_notice = [this](const std::string& text) { say(Importance::notice, text); };
    options.on_connected = [this] {
      place_->reached();
      place_timer_.cancel();
    };
    board_.emplace(context_, io_thread_, std::move(options),
                   [this](const Event& event) { handle(event); });
    board_->open();
  }

  MeetingPlace::Handlers handlers_of_place() {
    return {[this](const std::string& text) { say(Importance::notice, text); },
            [this](const muster::Error& error) {
              say(Importance::failure, error.message());
              exit_code_ = 1;
              context_.stop();
            }};
  }

  /// Every 10 s, until it is reached.
  void tell_of_place(muster::Duration delay) {
    place_timer_.expires_after(delay);
    place_timer_.async_wait([this](const asio::error_code& failed) {
      if (failed) return;
      say(Importance::notice, "waiting for the meeting place: " + place_->missing());
      tell_of_place(std::chrono::seconds(10));
    });
  }

  // Events.

  void handle(const Event& event) {
    for (const Effect& effect : job_.on(event, now()))
      std::visit([this](const auto& each) { apply(each); }, effect);
    const Instant next = job_.next_deadline();
    if (next == muster::base::far_future) return;
    timer_.expires_after(std::max(muster::Duration::zero(), next - now()));
    timer_.async_wait([this](const asio::error_code& failed) {
      if (!failed) handle(Advance{});
    });
  }

  void await_signals() {
    for (const int number : setup_.options.signals) signals_.add(number);
    await_signal();
  }

  void await_signal() {
    signals_.async_wait([this](const asio::error_code& failed, int number) {
      if (failed) return;
      if (ends_job(number)) {
        is_told_to_end_ = true;
        handle(Signalled{number, place_->is_hosted()});
      } else {
        guardian_.forward(number);
      }
      await_signal();
    });
  }

  void hear(const Report& report) {
    switch (report.kind) {
      case Report::Kind::started:
        say(Importance::detail, "rank " +
                                    std::to_string(current_.ranks->rank_of(report.local_rank)) +
                                    " runs as pid " + std::to_string(report.pid));
        break;
      case Report::Kind::not_started: handle(not_started(report)); break;
      case Report::Kind::ended: hear_end(report); break;
      case Report::Kind::gone: {
        current_.ranks.reset();
        current_.hold.close();
        current_.agent_store.reset();
        board_->end_attempt();
        std::string stuck;
        if (report.number > 0)
          stuck = std::to_string(report.number) + ", such as pid " + std::to_string(report.pid);
        handle(RanksGone{stuck});
        break;
      }
    }
  }

  NotStarted not_started(const Report& report) const {
    const std::string error = text_of_error(report.number);
    if (report.step != Report::Step::execution)
      return {
          current_.number, 1,
          "there is no process for local rank " + std::to_string(report.local_rank) + ": " + error};
    const ExitStatus as_of_shell{report.number == ENOENT ? 127 : 126, {}};
    // Of a script that is the interpreter's name.
    const std::string name = command_of(setup_.options, setup_.environment).front();
    const bool is_there = report.number == ENOENT && name.find('/') != std::string::npos &&
                          ::access(name.c_str(), F_OK) == 0;
    return {current_.number, exit_code_of(as_of_shell, setup_.options.compat),
            "'" + muster::base::shown_unless_secret(name) + "': " + error +
                (is_there ? "; it is the program that its first line names" : "")};
  }

  void hear_end(const Report& report) {
    RankEnded ended;
    ended.attempt = current_.number;
    ended.local_rank = report.local_rank;
    ended.pid = report.pid;
    const ExitStatus status = exit_status_of(report.number);
    ended.exit_code = exit_code_of(status, setup_.options.compat);
    ended.how = status.text;
    if (ended.exit_code != 0) ended.output = current_.ranks->last_words(report.local_rank);
    handle(ended);
  }

  void lose_guardian(const std::string& how) {
    say(Importance::failure, how + "; the ranks of this node were ended");
    exit_code_ = 1;
    context_.stop();
  }

  // Effects.

  void apply(const WatchNodes& effect) { board_->watch_nodes(effect.watch); }
  void apply(const PublishPlan& effect) { board_->publish(effect.plan); }
  void apply(const AwaitPlan& effect) { board_->await_plan(effect.attempt); }
  void apply(const AwaitVerdict& effect) { board_->await_verdict(effect.attempt); }
  void apply(const PublishVerdict& effect) { board_->publish(effect.attempt, effect.verdict); }
  void apply(const PublishEnding& effect) { board_->publish(effect.ending); }
  void apply(const CountSuccess& effect) { board_->count_success(effect.attempt); }
  void apply(const Unregister&) { board_->unregister(); }
  void apply(const ForwardSignal& effect) { guardian_.forward(effect.number); }
  void apply(const Say& effect) { say(effect.importance, effect.text); }

  void apply(const EndRanks& effect) {
    current_.may_start = false;
    guardian_.end(effect.grace, effect.were_told);
  }

  void apply(const Finish& effect) {
    exit_code_ = effect.exit_code;
    board_->leave(place_->is_hosted() ? Board::Leave::last : Board::Leave::now,
                  [this] { context_.stop(); });
  }

  void apply(const StartRanks& effect) {
    current_.number = effect.plan.attempt;
    current_.may_start = true;
    AttemptPlace place;
    place.number = effect.plan.attempt;
    place.job_id = setup_.job_id;
    if (setup_.placement.is_multi_node) {
      place.world_size = setup_.placement.world_size;
      place.base_rank = setup_.placement.base_rank;
      place.node_rank = setup_.placement.node_rank;
      place.node_count = setup_.placement.node_count;
      place.master_addr = setup_.placement.master_addr;
      place.master_port = setup_.placement.master_port.value_or(0);
      return start(std::move(place));
    }
    place.world_size = effect.plan.world_size();
    place.base_rank = effect.plan.base_rank_of(effect.node_rank);
    place.node_rank = effect.node_rank;
    place.node_count = static_cast<int>(effect.plan.nodes.size());
    place.base_role_rank = effect.plan.base_role_rank_of(effect.node_rank);
    place.role_world_size = effect.plan.role_world_size_of(effect.node_rank);
    place.store = place_->address();
    place.name_space = namespace_of_attempt(setup_.job_id, place.number);
    board_->begin(effect.plan, effect.node_rank);
    if (effect.node_rank == 0) {
      place_->with_own_host([this, plan = effect.plan, place](const std::string& host) {
        if (current_.number != place.number || !current_.may_start) return;
        start_first_node(plan, place, host);
      });
      return;
    }
    board_->await_master(place.number, [this, place](const std::string& text) mutable {
      if (current_.number != place.number || !current_.may_start) return;
      read_master(text, place);
      start(std::move(place));
    });
  }

  void start_first_node(const Plan& plan, AttemptPlace place, const std::string& own_host) {
    const bool has_other_nodes = plan.nodes.size() > 1;
    if (!find_master_addr(plan, place, own_host)) return;
    if (!open_master(place, has_other_nodes)) return;
    if (has_other_nodes) board_->publish_master(place.number, text_of_master(place));
    start(std::move(place));
  }

  /// returns  whether the ranks of all nodes can be told one
  bool find_master_addr(const Plan& plan, AttemptPlace& place, const std::string& own_host) {
    const LaunchOptions& options = setup_.options;
    const auto& given = options.master.addr ? options.master.addr : options.rendezvous.local_addr;
    place.master_addr = given ? *given : own_host;
    if (given) return true;
    const auto other = std::find_if(plan.nodes.begin(), plan.nodes.end(), [&](const Node& node) {
      return node.host != plan.nodes.front().host;
    });
    std::string why;
    if (place.master_addr.empty() && plan.nodes.size() > 1) {
      why = "no address of this host is known, since that of " + place_->address() +
            " cannot be looked up here";
    } else if (is_loopback(place.master_addr) && other != plan.nodes.end()) {
      why = "it would be " + place.master_addr + ", which host " + other->host +
            " does not reach: that is how this host reaches " + place_->address();
    }
    if (place.master_addr.empty()) place.master_addr = "127.0.0.1";
    if (why.empty()) return true;
    handle(NotStarted{place.number, 1,
                      "there is no MASTER_ADDR for the ranks: " + why +
                          "; give --local-addr on each node, or --master_addr"});
    return false;
  }

  /// At MASTER_ADDR and MASTER_PORT there is a TCPStore for torch or, where none may be, nobody.
  ///
  /// returns  whether the attempt may begin
  bool open_master(AttemptPlace& place, bool has_other_nodes) {
    const LaunchOptions& options = setup_.options;
    place.master_port = options.master.port.value_or(0);
    if (options.master.tcpstore == TcpStore::off) return hold_port(place);
    AgentStore::Options wanted;
    wanted.host = place.master_addr;
    wanted.port = place.master_port;
    wanted.has_other_nodes = has_other_nodes;
    wanted.others_may_reach = others_may_reach_store();
    wanted.dialect = options.master.tcpstore_dialect;
    wanted.io_thread = io_thread_;
    wanted.say = [this](Importance importance, const std::string& text) { say(importance, text); };
    auto opened = AgentStore::open(std::move(wanted));
    if (!opened) return go_on_without_store(opened.error(), place);
    current_.agent_store.emplace(*std::move(opened));
    place.master_port = current_.agent_store->port();
    place.has_agent_store = true;
    say(Importance::detail, "the TCPStore of torch is at " + place.master_addr + " port " +
                                std::to_string(place.master_port) + "; musterctl --server " +
                                current_.agent_store->address() + " looks into it");
    return true;
  }

  /// A TCPStore asks nobody who he is. Beyond this host one is opened where the job's server asks
  /// nobody either, or somebody has said so.
  bool others_may_reach_store() const {
    const LaunchOptions& options = setup_.options;
    return options.master.tcpstore == TcpStore::on ||
           (!has_credential() &&
            (options.rendezvous.allow_unauthenticated || !options.rendezvous.endpoint.empty()));
  }

  bool go_on_without_store(const muster::Error& error, AttemptPlace& place) {
    std::string why = error.message();
    if (error.code == muster::ErrorCode::permission_denied && !others_may_reach_store())
      why = "others reach " + place.master_addr +
            ", and it asks nobody who he is; --tcpstore on opens it";
    // A rank could not listen there either.
    const bool is_vital = setup_.options.master.tcpstore == TcpStore::on ||
                          error.code == muster::ErrorCode::address_in_use;
    if (is_vital) {
      handle(NotStarted{place.number, 1, "the TCPStore of torch: " + why});
      return false;
    }
    if (!std::exchange(has_told_of_store_, true))
      say(Importance::notice, "there is no TCPStore for torch, whose rank 0 hosts it: " + why);
    return hold_port(place);
  }

  /// MASTER_PORT is this job's until a rank listens there: the socket has the port, and does not
  /// listen, so one that may share the address can.
  bool hold_port(AttemptPlace& place) {
    auto held = HeldPort::hold(place.master_port);
    if (!held) {
      handle(NotStarted{place.number, 1, held.error().detail});
      return false;
    }
    current_.hold = *std::move(held);
    place.master_port = current_.hold.port();
    return true;
  }

  void start(AttemptPlace place) {
    const int number = place.number;
    current_.ranks.emplace(context_, console_, setup_.options, setup_.environment, files_,
                           std::move(place));
    if (std::string problem = current_.ranks->start(guardian_); !problem.empty())
      handle(NotStarted{number, 1, std::move(problem)});
  }

  void say(Importance importance, const std::string& text) {
    if (importance == Importance::detail && !setup_.options.verbose) return;
    console_.write(Console::Stream::errors,
                   "musterrun: " + text + (!text.empty() && text.back() == '\n' ? "" : "\n"));
  }

  int fail(const std::string& why) {
    say(Importance::failure, why);
    guardian_.close();
    console_.finish(Console::Patience::brief);
    return 1;
  }

  LauncherSetup setup_;
  const LogFolder files_;
  asio::io_context context_;
  Console console_;
  const std::string no_namespace_;
  Job job_;
  asio::signal_set signals_;
  asio::steady_timer timer_;
  asio::steady_timer place_timer_;
  GuardianLink guardian_;
  std::optional<MeetingPlace> place_;
  std::optional<Board> board_;
  std::shared_ptr<muster::IoThread> io_thread_;  ///< of the loop of `run`
  CurrentAttempt current_;
  bool is_told_to_end_ = false;  ///< by a signal
  bool has_told_of_store_ = false;
  int exit_code_ = 1;
};

}  // namespace

int run_launcher(LauncherSetup setup) {
  const OwnFolder& own_folder = *setup.own_folder;
  const int exit_code = Launcher(std::move(setup)).run();
  own_folder.remove();
  return exit_code;
}

}  // namespace musterrun
