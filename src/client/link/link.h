#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/forked.h"
#include "base/inline_function.h"
#include "base/spare_nodes.h"
#include "base/time.h"
#include "client/call_impl.h"
#include "client/cancel_mark.h"
#include "client/handlers.h"
#include "client/protocol/protocol.h"
#include "muster/store.h"
#include "net/address/address.h"
#include "net/connector.h"
#include "net/loop.h"
#include "net/task.h"
#include "net/timer.h"

namespace muster::client {

using base::Instant;
using protocol::CallId;

/// How a call ended, as the group's state has to know it.
struct Outcome {
  Result<std::string> reply;
  protocol::Fate fate = protocol::Fate::unsent;
};

/// One call on its way to the server.
struct Ticket {
  std::uint64_t serial = 0;          ///< from `next_serial`, taken when the public call began
  std::shared_ptr<CancelMark> mark;  ///< of its group; null: none
  /// Of a call that is others' too: what asks the server to end it for all of them.
  std::optional<std::variant<wire::CancelRound, wire::CancelRegroup>> cancellation;
  /// Both run once, `settle` first, on the I/O thread (or, after `give_up`, on the thread that
  /// did), and never block. May be empty.
  base::InlineFunction<void(const Outcome& outcome), 32> settle;
  base::InlineFunction<void(Outcome&& outcome), 8> done;
};

/// What wants to know of the epoch it belongs to.
class EpochWatcher {
 public:
  virtual void on_event(const wire::Event& event) = 0;

 protected:
  ~EpochWatcher() = default;
};

/// The rim around one Protocol: a socket, a timer, and threads that call.
///
/// Life cycle: create -> establish -> established, and again after every loss -> close -> finished.
/// Any thread may call; a mutex guards the protocol. Whoever calls leaves effects behind and wakes
/// the I/O thread, once for many calls; only the I/O thread carries effects out. In a forked child
/// only `is_forked` and `close_inherited` may be called.
class Link : public std::enable_shared_from_this<Link> {
 public:
  /// errors  invalid_argument, resource_exhausted (no thread or descriptor left)
  static Result<std::shared_ptr<Link>> create(std::string_view address, StoreOptions options);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Begins the first session, or after its end a new one; `done` runs once it stands, cannot
  /// come about, is cancelled, or `timeout` has passed.
  using Establishment = base::InlineFunction<void(Result<void>&& result), 16>;
  Call establish(Duration timeout, Establishment done);

  std::uint64_t next_serial() { return last_serial_.fetch_add(1) + 1; }
  /// Takes the ticket, unless it throws std::bad_alloc.
  CallId submit(const wire::RequestBody& body, Duration timeout, Ticket&& ticket);

  /// To cancel what was submitted.
  Call handle_of(CallId call);

  /// Ends a call that the I/O thread did not end in time; nothing if it has just done so.
  void give_up(CallId call);

  /// What a call has counted cannot be taken back, or what is in here cannot be trusted any more:
  /// the I/O thread ends the session and every call.
  void break_down() noexcept;

  /// Async-signal-safe: marks what has begun, and wakes the I/O thread to see to it.
  void cancel() noexcept;
  void cancel(CancelMark& mark) noexcept;

  /// Ends the calls of an owner that is gone, with `closed`.
  void cancel_closed(CancelMark& mark);

  /// Ends the session in order and every pending call with `closed`. Waits until the goodbye has
  /// been handed to the kernel, `goodbye_patience` at most; never for the network.
  void close();

  /// False if somebody watches that epoch already.
  [[nodiscard]] bool watch(std::uint64_t epoch, std::weak_ptr<EpochWatcher> watcher);
  /// The watcher is gone.
  void unwatch(std::uint64_t epoch);

  bool is_forked() const;
  /// In a forked child: closes what it inherited.
  void close_inherited();
  /// Whether a blocking call of this thread would wait for itself.
  bool would_deadlock() const;

  /// Whether one more caller may spin, until `end_spin`. All cores but one at most: on the last one
  /// it would keep everybody else from running.
  bool begin_spin() {
    if (spinners_.fetch_add(1, std::memory_order_relaxed) < spinners_max_) return true;
    end_spin();
    return false;
  }
  void end_spin() { spinners_.fetch_sub(1, std::memory_order_relaxed); }

  /// As the server that answered last said.
  Limits limits() const;
  std::uint64_t incarnation() const;
  const StoreOptions& options() const { return options_; }
  const std::string& address() const { return address_text_; }
  const ProcessInfo& process() const { return process_; }
  const Handlers& handlers() const { return handlers_; }

  /// How much longer than deadline + slack a blocking call waits for an I/O thread that does not
  /// get to run, such as one whose inline handler blocks.
  static constexpr Duration patience{std::chrono::milliseconds(100)};
  static constexpr Duration goodbye_patience{std::chrono::milliseconds(100)};
  /// How long a cancelled round or regroup waits for the server's decision.
  static constexpr Duration cancel_patience{std::chrono::seconds(2)};

 private:
  struct Pending {
    Ticket ticket;
    bool is_cancelled = false;
    Instant give_up_at = base::far_future;
  };
  using PendingCalls = std::map<CallId, Pending>;
  struct Establishing {
    std::uint64_t number = 0;
    Instant deadline{};
    Instant begun{};
    bool is_cancelled = false;
    Establishment done;
  };

  /// What the handles of calls lead to: those that were submitted, and those that establish.
  struct SubmittedCalls final : Call::Impl {
    explicit SubmittedCalls(Link& owner) : link(owner) {}
    void cancel(std::uint64_t number) noexcept override { link.cancel_submitted(number); }
    Link& link;
  };
  struct EstablishingCalls final : Call::Impl {
    explicit EstablishingCalls(Link& owner) : link(owner) {}
    void cancel(std::uint64_t number) noexcept override { link.cancel_establishing(number); }
    Link& link;
  };

  Link(net::Address address, std::string address_text, StoreOptions options);

  /// Posted to the I/O thread, which holds the link until the turn has begun.
  class Turn final : public net::Task {
   public:
    explicit Turn(Link& link) : link_(link) {}
    void hold(std::shared_ptr<Link> link) { held_ = std::move(link); }
    void run() override {
      const auto held = std::move(held_);
      link_.is_woken_ = false;  // from here on it may be posted again
      link_.turn();
    }
    void drop() noexcept override { const auto held = std::move(held_); }

   private:
    Link& link_;
    std::shared_ptr<Link> held_;
  };

  // Any thread.
  void wake() noexcept;
  bool is_in_turn() const;
  void take_back(std::uint64_t establishing);
  void cancel_submitted(CallId call) noexcept;
  void cancel_establishing(std::uint64_t number) noexcept;

  // On the I/O thread.
  void apply(const protocol::Input& input);
  void start();
  void turn();
  void pump();
  void execute(protocol::Connect& effect);
  void execute(protocol::Disconnect& effect);
  void execute(protocol::Transmit& effect);
  void send(std::string&& bytes);
  void let_nobody_send();
  void execute(protocol::Complete& effect);
  void tell_watchers(const wire::Event& event);
  void execute(protocol::Notify& effect);
  void execute(protocol::Established& effect);
  void execute(protocol::Log& effect);
  void connected(net::Connector::Outcome outcome);
  static void complete(Ticket& ticket, Outcome outcome);
  void close_one_set_aside();
  void close_set_aside();
  void settle_establishing();
  void cancel_marked();
  void give_up_cancelled();
  void fail(std::string_view why);
  void end_turn();
  void finish();

  // With the mutex held.
  bool send_directly();
  Pending& add_pending(CallId id);
  void cancel_pending(CallId id, Pending& pending, Instant now);
  Ticket take_ticket(PendingCalls::iterator pending);
  std::optional<Result<void>> outcome_of(const Establishing& waiting, Instant now) const;
  Error not_established(const Establishing& waiting, Instant now) const;

  const net::Address address_;
  const std::string address_text_;
  const StoreOptions options_;
  const ProcessInfo process_;
  const base::Owner owner_;
  const std::shared_ptr<IoThread> io_thread_;
  const Handlers handlers_;
  net::Loop& loop_;
  const int spinners_max_;  ///< as the process had cores when the link was made
  std::atomic<int> spinners_{0};

  std::atomic<std::uint64_t> last_serial_{0};
  CancelMark mark_;
  std::atomic<bool> is_cancelling_{false};
  std::atomic<bool> is_woken_{false};
  std::atomic<bool> is_broken_{false};
  Turn turn_{*this};
  SubmittedCalls submitted_{*this};
  EstablishingCalls establishing_calls_{*this};

  mutable std::mutex mutex_;
  std::unique_ptr<protocol::Protocol> protocol_;
  PendingCalls pending_;
  base::SpareNodes<PendingCalls> spare_pending_;
  std::vector<Establishing> establishing_;
  std::map<std::uint64_t, std::weak_ptr<EpochWatcher>> watchers_;
  Limits limits_;
  std::uint64_t incarnation_ = 0;
  std::uint64_t attempt_count_ = 0;  ///< to connect, since establish
  Instant give_up_at_ = base::far_future;
  bool is_closing_ = false;
  bool is_finished_ = false;
  std::condition_variable finished_;
  /// Of the connection, while the I/O thread has nothing to write there: then whoever calls writes
  /// itself, which spares the I/O thread's being woken. Otherwise -1.
  int direct_fd_ = -1;
  std::string leftover_;  ///< what the socket has not taken of that
  Instant armed_for_ = base::far_future;

  // The I/O thread's.
  std::shared_ptr<net::Connector> connector_;
  std::shared_ptr<net::Connection> connection_;
  /// Silent ones, the oldest first: their ends would tell the server that this process has ended.
  std::vector<std::shared_ptr<net::Connection>> set_aside_;
  net::Timer timer_;
  bool is_in_turn_ = false;  ///< and will look for effects again
  std::vector<protocol::Effect> spare_effects_;
  std::vector<std::string> spare_bytes_;  ///< of what has left
  bool polls_busily_ = false;
  std::uint64_t bell_number_ = 0;
  std::uint64_t failure_number_ = 0;
};

}  // namespace muster::client
