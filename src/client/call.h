#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/monotonic_now.h"
#include "client/link.h"
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
struct Subject {
  std::string_view operation;
  std::string group;
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;
};

/// A call that is ready to go, or why it cannot.
template <class T>
struct Call {
  Subject subject;
  Duration timeout{0};
  wire::RequestBody body;  ///< views what the caller lends until it is submitted
  Ticket ticket;
  std::function<Result<T>(std::string reply)> decode;
  std::optional<Error> refused;
  /// Held until the call is submitted, so that numbered calls leave in the order of their numbers.
  std::unique_lock<std::mutex> order;
  /// Its group counts it: neither the number nor the answer can be had again.
  bool is_counted = false;
};

/// Adds what only the public call knows.
Error described(Error error, const Subject& subject, const Link* link, Instant begun);

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
Error ended_by_memory(Link& link, const Subject& subject, Progress progress, Instant begun);

/// Of a call that nobody has completed when the last who knew of it let go of it.
Error let_go();

/// Waits for one submitted call, at most until deadline + slack + `Link::patience`, whatever
/// happens to the I/O thread.
class Waiting {
 public:
  Waiting(Link& link, const wire::RequestBody& body, Duration timeout, Ticket ticket);
  Outcome outcome();

 private:
  class Place;

  Link& link_;
  const std::shared_ptr<Place> place_;  ///< whoever completes it may hold it longer than we do
  const Instant until_;
  const CallId call_;
};

/// Waits for a session, in the same way.
Result<void> establish_and_wait(Link& link, Duration timeout);

template <class T>
Result<T> finished(const Call<T>& call, const Link& link, Instant begun,
                   Result<std::string> reply) {
  Result<T> result = reply ? call.decode(*std::move(reply)) : Result<T>(std::move(reply).error());
  if (!result) result.error() = described(std::move(result.error()), call.subject, &link, begun);
  return result;
}

/// The blocking form of what `build(link)` makes a Call of.
template <class T, class Build>
Result<T> block_on(const std::shared_ptr<Link>& link, std::string_view operation, Build build) {
  const Instant begun = base::monotonic_now();
  Progress progress;
  try {
    if (auto refused = refusal_to_begin(*link, Form::blocking)) {
      return described(*std::move(refused), {operation, {}, 0, 0}, link.get(), begun);
    }
    const std::uint64_t serial = link->next_serial();
    Call<T> call = build();
    if (call.refused) {
      return described(*std::move(call.refused), call.subject, link.get(), begun);
    }
    call.ticket.serial = serial;
    progress.is_counted = call.is_counted;
    Waiting waiting(*link, call.body, call.timeout, std::move(call.ticket));
    progress.is_submitted = true;
    call.order = {};
    return finished(call, *link, begun, waiting.outcome().reply);
  } catch (const std::bad_alloc&) {
    return ended_by_memory(*link, {operation, {}, 0, 0}, progress, begun);
  }
}

/// The handler of a call in its callback form, with what its errors tell. It runs once: with a
/// result, or when the last who knows of the call lets go of it.
template <class T>
class Delivery {
 public:
  Delivery(std::shared_ptr<Link> link, std::string_view operation, Handler<T> handler)
      : link_(std::move(link)), operation_(operation), handler_(std::move(handler)) {}
  ~Delivery() {
    if (!handler_) return;
    try {
      fail(let_go(), {operation_, {}, 0, 0});
      return;
    } catch (...) {  // memory is out, again
    }
    try {
      Error error;  // without texts; and here, rather than never
      error.code = ErrorCode::outcome_unknown;
      take_handler()(std::move(error));
    } catch (...) {  // as wherever handlers run
    }
  }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  Link& link() const { return *link_; }
  Instant begun() const { return begun_; }
  std::string_view operation() const { return operation_; }
  bool is_over() const { return !handler_; }

  void give(Result<T> result) {
    // What needs memory first: without any, the handler is still here.
    const auto held = std::make_shared<std::pair<Handler<T>, Result<T>>>(nullptr, Error());
    std::function<void()> work = [held] { held->first(std::move(held->second)); };
    held->first = std::exchange(handler_, nullptr);
    held->second = std::move(result);
    link_->handlers().dispatch(operation_, std::move(work));
  }
  void fail(Error error, const Subject& subject) {
    give(described(std::move(error), subject, link_.get(), begun_));
  }
  Handler<T> take_handler() { return std::exchange(handler_, nullptr); }

 private:
  const std::shared_ptr<Link> link_;
  const std::string_view operation_;
  const Instant begun_ = base::monotonic_now();
  Handler<T> handler_;
};

/// A call in its callback form that is under way.
template <class T>
struct Started {
  Started(std::shared_ptr<Link> link, std::string_view operation, Handler<T> handler)
      : delivery(std::move(link), operation, std::move(handler)) {}

  Delivery<T> delivery;
  Call<T> call;
  Result<std::string> reply{std::string()};
};

template <class T>
Result<T> result_of(Started<T>& started) {
  const Delivery<T>& delivery = started.delivery;
  try {
    return finished(started.call, delivery.link(), delivery.begun(), std::move(started.reply));
  } catch (const std::bad_alloc&) {
    return ended_by_memory(delivery.link(), {delivery.operation(), {}, 0, 0},
                           {started.call.is_counted, true}, delivery.begun());
  }
}

template <class T>
void complete(const std::shared_ptr<Started<T>>& started, Outcome outcome) {
  const Delivery<T>& delivery = started->delivery;
  if (delivery.is_over()) return;
  started->reply = std::move(outcome.reply);
  delivery.link().handlers().dispatch(delivery.operation(), [started] {
    const Handler<T> handler = started->delivery.take_handler();
    handler(result_of(*started));
  });
}

template <class T, class Build>
void submit(const std::shared_ptr<Started<T>>& started, Build build) {
  Link& link = started->delivery.link();
  const std::uint64_t serial = link.next_serial();
  Call<T>& call = started->call;
  call = build();
  if (call.refused) return started->delivery.fail(*std::move(call.refused), call.subject);
  const std::unique_lock<std::mutex> order = std::move(call.order);
  Ticket ticket = std::move(call.ticket);
  ticket.serial = serial;
  ticket.done = [started](Outcome outcome) { complete(started, std::move(outcome)); };
  const wire::RequestBody body = std::move(call.body);
  call.body = wire::Status{};  // what it views belongs to the caller
  link.submit(body, call.timeout, std::move(ticket));
}

/// The callback form.
template <class T, class Build>
void start(const std::shared_ptr<Link>& link, std::string_view operation, Handler<T> handler,
           Build build) {
  if (auto refused = refusal_to_begin(*link, Form::callback)) {
    // A forked child has no thread to run it on.
    if (!handler) return;
    return handler(
        described(*std::move(refused), {operation, {}, 0, 0}, link.get(), base::monotonic_now()));
  }
  const auto started = std::make_shared<Started<T>>(link, operation, std::move(handler));
  try {
    submit(started, std::move(build));
  } catch (const std::bad_alloc&) {
    if (started->call.is_counted) link->break_down();
  }
}

}  // namespace muster::client
