#include "client/call.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "base/monotonic_now.h"
#include "client/failure.h"
#include "muster/interruptible.h"

namespace muster::client {
namespace {

constexpr Duration wake_patience{std::chrono::milliseconds(500)};

/// A caller looks so long for its answer before it sleeps: to be woken takes longer than most
/// answers.
constexpr std::chrono::microseconds spin_time{30};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// returns  whether it was given meanwhile
template <class T>
bool spin_for(const Waiter<T>& waiter) {
  const auto until = std::chrono::steady_clock::now() + spin_time;
  while (!waiter.is_given()) {
    for (int count = 0; count < 16; ++count) relax();
    if (std::chrono::steady_clock::now() >= until) return waiter.is_given();
  }
  return true;
}

/// request  the index of its alternative in wire::RequestBody
template <class T>
void look_for(const Waiter<T>& waiter, Spinners& spinners, std::size_t request) {
  if (spinners.begin(request)) spinners.end(request, spin_for(waiter));
}

/// Waits, and asks once in a while whether the call is to be cancelled; then it is, and its end is
/// waited for.
template <class T, class Cancel>
bool wait_interruptibly(Waiter<T>& waiter, Instant deadline, const Interruptible& interruptible,
                        const Cancel& cancel) {
  while (true) {
    const Instant next = std::min(base::monotonic_now() + interruptible.period(), deadline);
    if (waiter.wait_until(next)) return true;
    if (next == deadline) return false;
    if (interruptible.is_interrupted()) break;
  }
  cancel();
  return waiter.wait_until(deadline);
}

/// A process that was stopped beyond the deadline has a little more time: its I/O thread was
/// stopped, too, and the answer may be there.
template <class T, class Cancel>
bool wait_until(Waiter<T>& waiter, Instant deadline, const Cancel& cancel) {
  const Interruptible* const interruptible = Interruptible::current();
  if (interruptible != nullptr) {
    if (wait_interruptibly(waiter, deadline, *interruptible, cancel)) return true;
  } else if (waiter.wait_until(deadline)) {
    return true;
  }
  const Instant now = base::monotonic_now();
  const bool was_stopped = now - deadline > Link::patience;
  return was_stopped && waiter.wait_until(now + wake_patience);
}

Instant last_resort(const Link& link, Duration timeout) {
  return base::deadline_after(base::monotonic_now(), timeout) + link.limits().slack +
         Link::patience;
}

}  // namespace

Error described(Error error, const ErrorContext& context, protocol::Fate fate, const Link* link,
                Instant begun) {
  tell_happened(error, context.operation, fate);
  error.operation = context.operation;
  if (error.group.empty() && context.group) error.group = *context.group;
  if (error.epoch == 0) error.epoch = context.epoch;
  if (error.round == 0) error.round = context.round;
  if (!error.stream) error.stream = context.stream;
  if (error.where.empty() && link != nullptr) error.where = link->address();
  if (error.decided_by.empty()) error.decided_by = "client";
  error.elapsed = base::monotonic_now() - begun;
  return error;
}

Error out_of_memory() {
  return failure(ErrorCode::resource_exhausted,
                 "this process has no memory left; the call did not begin");
}

Error ended_by_memory(Link& link, const ErrorContext& context, Progress progress, Instant begun) {
  if (progress.is_counted) link.break_down();
  const auto fate = progress.is_submitted ? protocol::Fate::in_doubt : protocol::Fate::unsent;
  try {
    Error error = progress.is_submitted
                      ? failure(ErrorCode::outcome_unknown,
                                "this process has no memory left to take the answer")
                      : out_of_memory();
    return described(std::move(error), context, fate, &link, begun);
  } catch (const std::bad_alloc&) {
    if (!progress.is_submitted) throw;
    Error error;
    error.code = ErrorCode::outcome_unknown;
    tell_happened(error, context.operation, fate);
    return error;
  }
}

Error let_go() {
  return failure(ErrorCode::outcome_unknown,
                 "nobody completed the call: memory was out, or its I/O thread has ended");
}

std::optional<Error> refusal_to_begin(const Link& link, Form form) {
  if (link.is_forked()) {
    return failure(ErrorCode::forked,
                   "the store belongs to the parent process; connect another one in the child");
  }
  if (form == Form::blocking && link.would_deadlock()) {
    return failure(ErrorCode::would_deadlock,
                   "a blocking call from a handler on the I/O thread; use its callback form there");
  }
  return std::nullopt;
}

Error moved_from(std::string_view operation) {
  Error error = failure(ErrorCode::closed, "the object was closed or moved from");
  error.operation = operation;
  tell_happened(error, operation, protocol::Fate::unsent);
  return error;
}

Result<Duration> timeout_or(Duration given, Duration by_default) {
  if (given == default_timeout) return by_default;
  if (given < Duration::zero()) return invalid_argument("timeout: not negative");
  return given;
}

namespace {

/// Gives a waiter what came of it, and nothing when it is dropped, as when memory is out where it
/// was to be completed.
template <class T, class Pointer>
class Completion {
 public:
  explicit Completion(Pointer waiter) : waiter_(std::move(waiter)) {}
  Completion(Completion&& other) noexcept : waiter_(std::exchange(other.waiter_, nullptr)) {}
  Completion& operator=(Completion&&) = delete;
  ~Completion() {
    if (waiter_ != nullptr) waiter_->give(std::nullopt);
  }

  void operator()(T&& result) { std::exchange(waiter_, nullptr)->give(std::move(result)); }

 private:
  Pointer waiter_;
};

}  // namespace

Waiting::Waiting(Link& link, Duration timeout, std::size_t request)
    : link_(link), until_(last_resort(link, timeout)), request_(request) {}

Waiting::Waiting(Link& link, const wire::RequestBody& body, Duration timeout, Ticket ticket)
    : Waiting(link, timeout, body.index()) {
  call_ = link.submit(body, timeout, completing(std::move(ticket)));
  is_over_ = false;
}

Ticket Waiting::completing(Ticket ticket) {
  using Place = Waiter<std::optional<Outcome>>;
  ticket.done = Completion<Outcome, Place*>(&place_);
  return ticket;
}

Waiting::~Waiting() {
  if (!is_over_) outcome();
}

Outcome Waiting::outcome() {
  is_over_ = true;
  const auto cancel = [this] { link_.handle_of(call_).cancel(); };
  look_for(place_, link_.spinners(), request_);
  if (!wait_until(place_, until_, cancel)) link_.give_up(call_);
  std::optional<Outcome> outcome = place_.take();
  if (!outcome) return {let_go(), protocol::Fate::in_doubt};
  return *std::move(outcome);
}

Result<void> establish_and_wait(Link& link, Duration timeout) {
  using SharedWaiter = std::shared_ptr<Waiter<std::optional<Result<void>>>>;
  const SharedWaiter waiter = std::make_shared<SharedWaiter::element_type>();
  const Instant until = last_resort(link, timeout);
  Call call = link.establish(timeout, Completion<Result<void>, SharedWaiter>(waiter));
  if (wait_until(*waiter, until, [&call] { call.cancel(); })) {
    std::optional<Result<void>> result = waiter->take();
    if (!result) return let_go();
    return *std::move(result);
  }
  return failure(ErrorCode::unavailable,
                 "the I/O thread did not get to run; is it blocked by an inline handler?");
}

}  // namespace muster::client
