#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/monotonic_now.h"
#include "client/happened.h"
#include "client/link/link.h"
#include "client/waiter.h"
#include "muster/call.h"
#include "muster/result.h"
#include "muster/store.h"
#include "wire/request.h"

// What every public call has in common, in its blocking and in its callback form:
//
//    may it begin here? -> build: check the arguments, take a number -> submit -> settle -> decode
//
// Blocking: the I/O thread hands the reply over, the caller decodes it. Callback: the handler's
// thread decodes it. Either way the I/O thread does not touch values, and settles the group's
// counters before anybody sees the result.

namespace muster::client {

/// What a call is about, for its errors. `operation` lives as long as the program.
struct ErrorContext {
  std::string_view operation;
  std::shared_ptr<const std::string> group{};  ///< its name; null: none
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;
  std::optional<StreamPosition> stream{};
};

/// A call that is ready to go, or why it cannot.
template <class T>
struct PreparedCall {
  ErrorContext context;
  Duration timeout{0};
  wire::RequestBody body;  ///< views what the caller lends until it is submitted
  Ticket ticket;
  base::InlineFunction<Result<T>(std::string&& reply), 48> decode;
  std::optional<Error> refused;
  /// Held until the call is submitted, so that numbered calls leave in the order of their numbers.
  std::unique_lock<std::mutex> order;
  /// Its group counts it: neither the number nor the answer can be had again.
  bool is_counted = false;
};

/// Adds what only the public call knows.
Error described(Error error, const ErrorContext& context, protocol::Fate fate, const Link* link,
                Instant begun);
/// Of a call that did not begin.
inline Error described(Error error, const ErrorContext& context, const Link* link, Instant begun) {
  return described(std::move(error), context, protocol::Fate::unsent, link, begun);
}

/// Why this thread may not begin a call; `blocking`, or in its callback form.
enum class Form { blocking, callback };
std::optional<Error> refusal_to_begin(const Link& link, Form form);

/// The error of every call on an object that was moved from.
Error moved_from(std::string_view operation);

/// `given`, or the default when none was given.
/// errors  invalid_argument (negative)
Result<Duration> timeout_or(Duration given, Duration by_default);

/// Of a call that could not begin.
Error out_of_memory();

/// How far a call has come, for when memory is out.
struct Progress {
  bool is_counted = false;
  bool is_submitted = false;
};

/// Memory was out in the midst of a call. One that its group has counted ends the session with it:
/// else this rank's next call would be taken for another one than the others'.
///
/// returns  resource_exhausted: it did not begin; or outcome_unknown. Where there is no memory for
///          an error that says so: outcome_unknown without texts, or std::bad_alloc
Error ended_by_memory(Link& link, const ErrorContext& context, Progress progress, Instant begun);

/// Of a call that nobody has completed when the last who knew of it let go of it.
Error let_go();

/// Submits a call and waits for its end, at most until deadline + slack + `Link::patience`,
/// whatever happens to the I/O thread. Needs no memory.
class Waiting {
 public:
  Waiting(Link& link, const wire::RequestBody& body, Duration timeout, Ticket ticket);
  /// For what `ask(Ticket)` has submitted, to cancel a call.
  template <class Ask>
  Waiting(Link& link, const Ask& ask)
      : Waiting(link, PendingCalls::cancel_patience,
                wire::RequestBody(wire::CancelTake{}).index()) {
    call_ = ask(completing({}));
    is_over_ = false;
  }
  /// Waits, too: whoever completes the call writes into this object.
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// Once.
  Outcome outcome();

 private:
  Waiting(Link& link, Duration timeout, std::size_t request);
  Ticket completing(Ticket ticket);

  Link& link_;
  Waiter<std::optional<Outcome>> place_;  ///< nothing: nobody completed the call
  const Instant until_;
  const std::size_t request_;  ///< what kind, as an index
  Link::Submitted call_;
  bool is_over_ = true;  ///< also before anything is submitted
};

/// Waits for a session, in the same way.
Result<void> establish_and_wait(Link& link, Duration timeout);

template <class T>
Result<T> finished(PreparedCall<T>& call, const Link& link, Instant begun, Outcome outcome) {
  Result<std::string>& reply = outcome.reply;
  if (!reply) {
    return described(std::move(reply).error(), call.context, outcome.fate, &link, begun);
  }
  Result<T> result = call.decode(*std::move(reply));
  if (result.has_value()) return result;
  // It was done, and its answer is of no use; or that was given back.
  const auto fate = result.error().code == ErrorCode::cancelled ? protocol::Fate::answered
                                                                : protocol::Fate::in_doubt;
  return described(std::move(result).error(), call.context, fate, &link, begun);
}

/// The blocking form of what `build(link)` makes a PreparedCall of.
template <class T, class Build>
Result<T> block_on(const std::shared_ptr<Link>& link, std::string_view operation, Build build) {
  const Instant begun = base::monotonic_now();
  Progress progress;
  try {
    if (auto refused = refusal_to_begin(*link, Form::blocking)) {
      return described(*std::move(refused), ErrorContext{operation}, link.get(), begun);
    }
    const std::uint64_t serial = link->next_serial();
    PreparedCall<T> call = build();
    if (call.refused) {
      return described(*std::move(call.refused), call.context, link.get(), begun);
    }
    call.ticket.serial = serial;
    progress.is_counted = call.is_counted;
    Waiting waiting(*link, call.body, call.timeout, std::move(call.ticket));
    progress.is_submitted = true;
    call.order = {};
    return finished(call, *link, begun, waiting.outcome());
  } catch (const std::bad_alloc&) {
    return ended_by_memory(*link, ErrorContext{operation}, progress, begun);
  }
}

/// A call in its callback form that is under way, and the run of its handler: with a result, or,
/// when the last who knows of the call lets go of it, with an error that says so.
template <class T>
class Started final : public Job {
 public:
  Started(std::shared_ptr<Link> link, std::string_view operation, Handler<T> handler)
      : Job(operation),
        link_(std::move(link)),
        operation_(operation),
        handler_(std::move(handler)) {}
  ~Started() override {
    if (handler_) let_go_of_handler();
  }

  const std::shared_ptr<Link>& link() const { return link_; }

  PreparedCall<T> call;
  Outcome outcome{std::string(), protocol::Fate::answered};

 private:
  void work() override {
    const Handler<T> handler = std::exchange(handler_, nullptr);
    if (handler) handler(result());
  }

  Result<T> result() {
    try {
      if (call.refused) {
        return described(*std::move(call.refused), call.context, link_.get(), begun_);
      }
      return finished(call, *link_, begun_, std::move(outcome));
    } catch (const std::bad_alloc&) {
      return ended_by_memory(*link_, ErrorContext{operation_}, {call.is_counted, true}, begun_);
    }
  }

  void let_go_of_handler() noexcept;

  const std::shared_ptr<Link> link_;
  const std::string_view operation_;
  const Instant begun_ = base::monotonic_now();
  Handler<T> handler_;
};

/// It runs as any other, or here, where there is no memory for that.
template <class T>
void Started<T>::let_go_of_handler() noexcept {
  try {
    Error error = described(let_go(), ErrorContext{operation_}, protocol::Fate::in_doubt,
                            link_.get(), begun_);
    const auto held = std::make_shared<std::pair<Handler<T>, Error>>(nullptr, std::move(error));
    std::function<void()> work = [held] { held->first(std::move(held->second)); };
    held->first = std::exchange(handler_, nullptr);
    link_->handlers().dispatch(operation_, std::move(work));
    return;
  } catch (...) {  // memory is out, again
  }
  if (!handler_) return;
  try {
    Error plain;  // without texts; and here, rather than never
    plain.code = ErrorCode::outcome_unknown;
    tell_happened(plain, operation_, protocol::Fate::in_doubt);
    std::exchange(handler_, nullptr)(std::move(plain));
  } catch (...) {  // as wherever handlers run
  }
}

template <class T>
void run_handler(std::unique_ptr<Started<T>> started) {
  const std::shared_ptr<Link> link = started->link();  // the handler may drop the last other one
  link->handlers().dispatch(std::move(started));
}

/// Of a call that is refused at once, which may be made in a handler: not inside the call.
template <class T>
void run_handler_later(std::unique_ptr<Started<T>> started) {
  const std::shared_ptr<Link> link = started->link();
  link->handlers().dispatch_later(std::move(started));
}

template <class T, class Build>
Call submit(std::unique_ptr<Started<T>> started, bool& is_counted, Build build) {
  const std::shared_ptr<Link> link = started->link();
  const std::uint64_t serial = link->next_serial();
  PreparedCall<T>& call = started->call;
  call = build();
  is_counted = call.is_counted;
  if (call.refused) {
    run_handler_later(std::move(started));
    return {};
  }
  Ticket ticket = std::move(call.ticket);  // outlives the lock: its end may run the handler
  const std::unique_lock<std::mutex> order = std::move(call.order);
  const wire::RequestBody body = std::move(call.body);
  call.body = wire::Status{};  // what it views belongs to the caller
  const Duration timeout = call.timeout;
  ticket.serial = serial;
  ticket.done = [started = std::move(started)](Outcome&& outcome) mutable {
    started->outcome = std::move(outcome);
    run_handler(std::move(started));
  };
  return link->handle_of(link->submit(body, timeout, std::move(ticket)));
}

/// The callback form.
template <class T, class Build>
Call start(const std::shared_ptr<Link>& link, std::string_view operation, Handler<T> handler,
           Build build) {
  if (auto refused = refusal_to_begin(*link, Form::callback)) {
    // A forked child has no thread to run it on.
    if (!handler) return {};
    handler(
        described(*std::move(refused), ErrorContext{operation}, link.get(), base::monotonic_now()));
    return {};
  }
  bool is_counted = false;
  auto started = std::make_unique<Started<T>>(link, operation, std::move(handler));
  try {
    return submit(std::move(started), is_counted, std::move(build));
  } catch (const std::bad_alloc&) {
    if (is_counted) link->break_down();
    return {};
  }
}

/// As a call whose reply is empty: begins a session.
template <class T>
Call establish(std::unique_ptr<Started<T>> started, Duration timeout) {
  const std::shared_ptr<Link> link = started->link();
  try {
    return link->establish(timeout, [started = std::move(started)](Result<void>&& result) mutable {
      if (!result) started->outcome.reply = std::move(result).error();
      run_handler(std::move(started));
    });
  } catch (const std::bad_alloc&) {  // whoever lets go of the handler says so
    return {};
  }
}

}  // namespace muster::client
