#include "guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "descendants.h"
#include "messages.h"
#include "pid_namespace.h"
#include "start_process.h"

// The guardian's life: it takes orders, and reports. A rank's end is seen by its pidfd: of several
// that end one after the other the descriptors get ready in that order, which SIGCHLD does not say.
// Processes whose parents have ended become its children, since it is a subreaper. So when it has
// no child, no process of the attempt is left.

namespace musterrun {

namespace {

using Descriptor = asio::posix::stream_descriptor;

class Guardian {
 public:
  explicit Guardian(GuardianOptions options)
      : options_(std::move(options)),
        orders_(context_, ::fcntl(options_.socket.get(), F_DUPFD_CLOEXEC, 0)),
        children_(context_, SIGCHLD),
        deadline_(context_),
        telling_(context_) {}

  int run() {
    ::fcntl(options_.socket.get(), F_SETFL, O_NONBLOCK);
    await_orders();
    await_children();
    context_.run();
    return 0;
  }

 private:
  struct Rank {
    pid_t pid = 0;
    pid_t outer_pid = 0;  ///< as people outside of the PID namespace know it
    std::unique_ptr<Descriptor> end;
  };

  void await_orders() {
    orders_.async_wait(Descriptor::wait_read, [this](const asio::error_code& failed) {
      if (failed) return;
      take_orders();
      if (!is_alone_) await_orders();
    });
  }

  void take_orders() {
    for (;;) {
      bool is_over = false;
      std::array<muster::base::FileHandle, start_descriptor_count> descriptors;
      const auto order = receive_message<Order>(options_.socket.get(), descriptors, is_over);
      if (is_over) return musterrun_is_gone();
      if (!order) return;
      switch (order->kind) {
        case Order::Kind::start: start(*order, descriptors); break;
        case Order::Kind::forward: signal_ranks(order->signal); break;
        case Order::Kind::end:
          end(std::chrono::nanoseconds(order->grace_ns), order->were_told != 0);
          break;
      }
    }
  }

  void musterrun_is_gone() {
    is_alone_ = true;
    end(options_.shutdown_timeout, false);
  }

  void start(const Order& order,
             std::array<muster::base::FileHandle, start_descriptor_count>& descriptors) {
    const auto started = start_process(order, descriptors, options_.outer_proc);
    if (started.pid < 0) {
      report({Report::Kind::not_started, started.step, order.local_rank, started.error, 0});
      return;
    }
    const pid_t outer_pid = outer_pid_of(started.pid, options_.outer_proc);
    report({Report::Kind::started, {}, order.local_rank, outer_pid, outer_pid});
    const auto number = static_cast<int>(::syscall(SYS_pidfd_open, started.pid, 0));
    Rank& rank = ranks_[order.local_rank];
    rank.pid = started.pid;
    rank.outer_pid = outer_pid;
    if (number >= 0) {
      rank.end = std::make_unique<Descriptor>(context_, number);
      rank.end->async_wait(Descriptor::wait_read,
                           [this, local_rank = order.local_rank](const asio::error_code& failed) {
                             if (!failed) take_end_of(local_rank);
                           });
    }
  }

  void take_end_of(int local_rank) {
    const auto rank = ranks_.find(local_rank);
    int status = 0;
    if (rank == ranks_.end() || ::waitpid(rank->second.pid, &status, WNOHANG) <= 0) return;
    report({Report::Kind::ended, {}, local_rank, status, rank->second.outer_pid});
    ranks_.erase(rank);
    look_at_children();
  }

  void await_children() {
    children_.async_wait([this](const asio::error_code& failed, int) {
      if (failed) return;
      look_at_children();
      await_children();
    });
  }

  void look_at_children() {
    std::vector<pid_t> ranks;
    for (auto rank = ranks_.begin(); rank != ranks_.end();) {
      const auto each = rank++;
      if (each->second.end == nullptr) take_end_of(each->first);  // without a pidfd
    }
    for (const auto& [local_rank, rank] : ranks_) ranks.push_back(rank.pid);
    const bool is_empty = reap_children(ranks);
    if (is_ending_ && is_empty && ranks_.empty()) tell_gone({});
  }

  /// To each rank's group of processes.
  void signal_ranks(int number) {
    for (const auto& [local_rank, rank] : ranks_) {
      ::kill(-rank.pid, number);
      ::kill(-rank.pid, SIGCONT);
    }
  }

  void end(std::chrono::nanoseconds grace, bool were_told) {
    const bool is_first = !is_ending_;
    is_ending_ = true;
    const auto at = std::chrono::steady_clock::now() + grace;
    if (is_first || at < deadline_.expiry()) {
      deadline_.expires_at(at);
      deadline_.async_wait([this](const asio::error_code& failed) {
        if (!failed && is_ending_) kill_all();
      });
    }
    if (is_first) {
      told_.clear();
      ranks_were_told_ = were_told;
      tell_to_end(std::chrono::milliseconds(10));
    }
    look_at_children();
  }

  /// All that were not told yet: a process may have forked another one meanwhile. Ranks that have a
  /// signal already are left alone with their children, as long as one of them lives.
  void tell_to_end(std::chrono::milliseconds pause) {
    if (!is_ending_ || killing_since_) return;
    if (!ranks_were_told_ || ranks_.empty()) {
      for (const Descendant& each : descendants()) {
        if (!told_.insert(each.pid).second) continue;
        ::kill(each.pid, SIGTERM);
        ::kill(each.pid, SIGCONT);
      }
    }
    telling_.expires_after(pause);
    telling_.async_wait([this, pause](const asio::error_code& failed) {
      if (!failed) tell_to_end(std::min(2 * pause, std::chrono::milliseconds(500)));
    });
  }

  void kill_all() {
    for (const Descendant& each : descendants()) ::kill(each.pid, SIGKILL);
    // Ranks are reported in the order of their ends, so they are taken as ever.
    killing_since_ = killing_since_.value_or(std::chrono::steady_clock::now());
    if (std::chrono::steady_clock::now() - *killing_since_ > std::chrono::seconds(5))
      return tell_gone(descendants());
    deadline_.expires_after(std::chrono::milliseconds(5));
    deadline_.async_wait([this](const asio::error_code& failed) {
      if (!failed && is_ending_) kill_all();
    });
    look_at_children();
  }

  void tell_gone(const std::vector<Descendant>& left) {
    is_ending_ = false;
    killing_since_.reset();
    deadline_.cancel();
    telling_.cancel();
    ranks_.clear();
    report({Report::Kind::gone,
            {},
            0,
            static_cast<std::int32_t>(left.size()),
            left.empty() ? 0 : outer_pid_of(left.front().pid, options_.outer_proc)});
    if (is_alone_) leave();
  }

  void leave() {
    if (options_.own_folder != nullptr) options_.own_folder->remove();
    context_.stop();
  }

  void report(const Report& report) {
    if (is_alone_) return;
    reports_.push_back(report);
    if (reports_.size() == 1) send_reports();
  }

  /// As far as musterrun reads them: it may be sending orders meanwhile.
  void send_reports() {
    while (!reports_.empty()) {
      if (!send_message(options_.socket.get(), reports_.front())) {
        if (errno == EAGAIN) {
          orders_.async_wait(Descriptor::wait_write, [this](const asio::error_code& failed) {
            if (!failed) send_reports();
          });
          return;
        }
        reports_.clear();  // its end is seen where orders are taken
        return;
      }
      reports_.pop_front();
    }
  }

  GuardianOptions options_;
  asio::io_context context_;
  Descriptor orders_;
  asio::signal_set children_;
  asio::steady_timer deadline_;
  asio::steady_timer telling_;
  std::map<int, Rank> ranks_;
  std::deque<Report> reports_;
  bool is_ending_ = false;
  bool ranks_were_told_ = false;
  std::set<pid_t> told_;  ///< to end
  std::optional<std::chrono::steady_clock::time_point> killing_since_;
  bool is_alone_ = false;  ///< musterrun is gone
};

}  // namespace

int run_guardian(GuardianOptions options) {
  ::setsid();  // a terminal's signals are for musterrun
  ::prctl(PR_SET_NAME, "musterrun-guard");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int number : signals_ignored_by_guardian) ::signal(number, SIG_IGN);
  return Guardian(std::move(options)).run();
}

}  // namespace musterrun
