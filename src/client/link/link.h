#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/forked.h"
#include "client/call_impl.h"
#include "client/handlers.h"
#include "client/link/driver.h"
#include "client/link/link_state.h"
#include "client/link/spinners.h"
#include "client/link/world.h"
#include "muster/store.h"

namespace muster::client {

/// The rim around one Protocol: connections, a timer, and threads that call. This is what callers
/// see of it; Driver is the I/O thread's part, LinkState what both share.
///
/// Life cycle: create -> establish -> established, and again after every loss -> close -> finished.
/// Any thread may call; a mutex guards the protocol. Whoever calls leaves effects behind and wakes
/// the I/O thread, once for many calls; only the I/O thread carries effects out. In a forked child
/// only `is_forked` and `close_inherited` may be called.
class Link : public std::enable_shared_from_this<Link> {
 public:
  /// errors  invalid_argument, resource_exhausted (no thread or descriptor left)
  static Result<std::shared_ptr<Link>> create(std::string_view address, StoreOptions options);
  /// In a world of its own; `options.io_thread` runs handlers.
  static std::shared_ptr<Link> create(std::string address, StoreOptions options,
                                      std::unique_ptr<World> world);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Begins the first session, or after its end a new one; `done` runs once it stands, cannot
  /// come about, is cancelled, or `timeout` has passed.
  Call establish(Duration timeout, Establishments::Done done);

  /// What `give_up` and `handle_of` take.
  struct Submitted {
    CallId call = 0;
    std::uint64_t slot = 0;
  };
  /// Takes the ticket, unless it throws std::bad_alloc.
  Submitted submit(const wire::RequestBody& body, Duration timeout, Ticket&& ticket);

  /// Asks the server to give back what a take has brought, whose receipt is its caller's. The
  /// ticket gets an outcome as that of the take: an error if it was given back, else the value.
  Submitted give_back(CallId call, std::string&& value, Ticket&& ticket);

  /// To cancel what was submitted.
  Call handle_of(const Submitted& submitted);

  /// Ends a call that the I/O thread did not end in time; nothing if it has just done so.
  void give_up(const Submitted& submitted);

  /// As `Requests::conclude`.
  void conclude(CallId call, protocol::Verdict verdict);

  /// What a call has counted cannot be taken back, or what is in here cannot be trusted any more:
  /// the I/O thread ends the session and every call.
  void break_down() noexcept;

  /// Async-signal-safe: marks what has begun, and wakes the I/O thread to see to it.
  void cancel() noexcept;
  void cancel(CancelMark& mark) noexcept;

  /// Ends the calls of an owner that is gone, with `closed`.
  void cancel_closed(CancelMark& mark);

  /// Ends the session in order and every pending call with `closed`. Waits until the goodbye has
  /// been handed to the kernel, 100 ms at most; never for the network.
  void close();

  bool is_forked() const { return owner_.is_forked(); }
  /// In a forked child: closes what it inherited.
  void close_inherited() { world_->close_inherited(); }
  /// Whether a blocking call of this thread would wait for itself.
  bool would_deadlock() const;

  /// Whether `on_session_end` is told of the ends that come from now on; it is, at first.
  void tell_session_ends(bool tells) { state_.tells_session_ends = tells; }

  /// As the server that answered last said.
  Limits limits() const;
  std::uint64_t incarnation() const;

  /// Of a call that begins.
  std::uint64_t next_serial() { return state_.cancels.next_serial(); }
  EpochWatchers& watchers() { return state_.watchers; }
  Spinners& spinners() { return spinners_; }
  const StoreOptions& options() const { return options_; }
  const std::string& address() const { return address_; }
  const ProcessInfo& process() const { return process_; }
  const Handlers& handlers() const { return handlers_; }

  /// How much longer than deadline + slack a blocking call waits for an I/O thread that does not
  /// get to run, such as one whose inline handler blocks.
  static constexpr Duration patience{std::chrono::milliseconds(100)};

 private:
  /// What the handles of calls lead to: those that were submitted, and those that establish.
  struct SubmittedCalls final : Call::Impl {
    explicit SubmittedCalls(Link& owner) : link(owner) {}
    void cancel(std::uint64_t number) noexcept override;
    Link& link;
  };
  struct EstablishingCalls final : Call::Impl {
    explicit EstablishingCalls(Link& owner) : link(owner) {}
    void cancel(std::uint64_t number) noexcept override;
    Link& link;
  };

  Link(std::string address, StoreOptions options, std::unique_ptr<World> world);

  bool send_directly();

  const std::string address_;
  const StoreOptions options_;
  const ProcessInfo process_;
  const base::Owner owner_;
  const std::unique_ptr<World> world_;
  const Handlers handlers_;
  Spinners spinners_;
  SubmittedCalls submitted_{*this};
  EstablishingCalls establishing_{*this};
  LinkState state_;
  Driver driver_;
};

}  // namespace muster::client
