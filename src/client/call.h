#pragma once

#include <functional>
#include <memory>
#include <mutex>
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

/// Runs `handler` where the options say.
template <class T>
void deliver(const Link& link, std::string_view operation, Handler<T> handler, Result<T> result) {
  if (!handler) return;
  auto held = std::make_shared<Result<T>>(std::move(result));
  link.handlers().dispatch(operation,
                           [held, handler = std::move(handler)] { handler(std::move(*held)); });
}

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
  if (auto refused = refusal_to_begin(*link, Form::blocking)) {
    return described(*std::move(refused), {operation, {}, 0, 0}, link.get(), begun);
  }
  const std::uint64_t serial = link->next_serial();
  Call<T> call = build();
  if (call.refused) {
    return described(*std::move(call.refused), call.subject, link.get(), begun);
  }
  call.ticket.serial = serial;
  Waiting waiting(*link, call.body, call.timeout, std::move(call.ticket));
  call.order = {};
  return finished(call, *link, begun, waiting.outcome().reply);
}

/// The callback form.
template <class T, class Build>
void start(const std::shared_ptr<Link>& link, std::string_view operation, Handler<T> handler,
           Build build) {
  const Instant begun = base::monotonic_now();
  if (auto refused = refusal_to_begin(*link, Form::callback)) {
    // A forked child has no thread to run it on.
    if (!handler) return;
    return handler(described(*std::move(refused), {operation, {}, 0, 0}, link.get(), begun));
  }
  const std::uint64_t serial = link->next_serial();
  auto call = std::make_shared<Call<T>>(build());
  if (call->refused) {
    Error error = described(*std::move(call->refused), call->subject, link.get(), begun);
    return deliver<T>(*link, operation, std::move(handler), std::move(error));
  }
  call->ticket.serial = serial;
  Ticket ticket = std::move(call->ticket);
  ticket.done = [link, call, operation, begun,
                 handler = std::move(handler)](Outcome outcome) mutable {
    if (!handler) return;
    auto reply = std::make_shared<Result<std::string>>(std::move(outcome.reply));
    link->handlers().dispatch(operation, [link, call, begun, reply, handler = std::move(handler)] {
      handler(finished(*call, *link, begun, std::move(*reply)));
    });
  };
  const wire::RequestBody body = std::move(call->body);
  call->body = wire::Status{};  // what it views belongs to the caller
  const std::unique_lock<std::mutex> order = std::move(call->order);
  link->submit(body, call->timeout, std::move(ticket));
}

}  // namespace muster::client
