#include "client/link/link.h"

#include <new>
#include <utility>

#include "base/random.h"
#include "base/secret/unshown.h"
#include "base/text.h"
#include "client/failure.h"
#include "client/link/link_options.h"
#include "client/link/net_world.h"
#include "net/address/address.h"
#include "net/cores.h"
#include "net/io_thread.h"

// Threads: a caller encodes its request under the mutex and writes it itself, or posts one turn to
// the I/O thread, unless one is posted already. The mutex is never held while somebody else's code
// runs.

namespace muster::client {
namespace {

constexpr Duration goodbye_patience{std::chrono::milliseconds(100)};

std::optional<Error> refusal_of(const StoreOptions& options) {
  if (options.name_space.size() > wire::name_bytes_max) {
    return invalid_argument("namespace: at most 64 bytes");
  }
  if (options.namespace_idle_lifetime && *options.namespace_idle_lifetime < Duration::zero()) {
    return invalid_argument("namespace_idle_lifetime: not negative");
  }
  if (options.run.size() > wire::name_bytes_max) {
    return invalid_argument("run: at most 64 bytes");
  }
  if (options.label.size() > wire::name_bytes_max) {
    return invalid_argument("label: at most 64 bytes");
  }
  if (auto refused = base::refuse_secret("label", options.label)) return refused;
  if (options.timeout < Duration::zero()) return invalid_argument("timeout: not negative");
  if (options.wait_for_server < Duration::zero() && options.wait_for_server != default_timeout) {
    return invalid_argument("wait_for_server: not negative");
  }
  if (options.busy_poll < Duration::zero() || options.busy_poll > busy_poll_max) {
    return invalid_argument("busy_poll: 0 to 100 ms");
  }
  return std::nullopt;
}

}  // namespace

Result<std::shared_ptr<Link>> Link::create(std::string_view address, StoreOptions options) {
  address = base::without_line_end(address);
  auto parsed = net::parse_address(address);
  if (!parsed) return std::move(parsed).error();
  if (!parsed->is_unix() && parsed->port == 0) {
    return invalid_argument("address " + base::quoted_text(address) +
                            ": nobody can be reached at port 0");
  }
  if (auto refused = refusal_of(options)) return *std::move(refused);
  if (base::own_process_id() == ProcessId{}) {
    return failure(ErrorCode::unavailable, std::string(base::no_random));
  }
  if (!options.io_thread) options.io_thread = IoThread::create();
  if (!options.io_thread) {
    return failure(ErrorCode::resource_exhausted, "the system has no thread or descriptor left");
  }
  auto credential = Credential::of(options, *parsed, Handlers(options, *options.io_thread));
  if (!credential) return std::move(credential).error();
  auto world =
      std::make_unique<NetWorld>(options.io_thread, *std::move(parsed), *std::move(credential));
  return create(std::string(address), std::move(options), std::move(world));
}

std::shared_ptr<Link> Link::create(std::string address, StoreOptions options,
                                   std::unique_ptr<World> world) {
  std::shared_ptr<Link> link(new Link(std::move(address), std::move(options), std::move(world)));
  link->driver_.belong_to(link);
  return link;
}

Link::Link(std::string address, StoreOptions options, std::unique_ptr<World> world)
    : address_(std::move(address)),
      options_(std::move(options)),
      process_(base::own_process(options_.label)),
      world_(std::move(world)),
      handlers_(options_, *options_.io_thread),
      spinners_(static_cast<int>(net::usable_cores()) - 1),
      driver_(options_, *world_, handlers_, state_) {
  state_.protocol = std::make_unique<protocol::Protocol>(
      protocol_options(address_, options_, process_, world_->random()));
  state_.limits = limits_of(wire::ServerLimits{});
}

Link::~Link() = default;

// Establishing.

Call Link::establish(Duration timeout, Establishments::Done done) {
  // Outlives the lock: what `done` holds may close this link when it goes.
  Establishments::Waiting waiting;
  waiting.done = std::move(done);
  waiting.number = next_serial();
  const std::uint64_t number = waiting.number;
  try {
    const std::lock_guard lock(state_.mutex);
    const Instant now = world_->now();
    waiting.begun = now;
    waiting.deadline = base::deadline_after(now, timeout);
    state_.establishments.add(std::move(waiting));
    state_.protocol->open(now);
  } catch (const std::bad_alloc&) {
    {
      std::optional<Establishments::Waiting> taken;  // outlives the lock
      const std::lock_guard lock(state_.mutex);
      taken = state_.establishments.take_back(number);
    }
    break_down();
    throw;
  }
  driver_.wake();
  return {std::shared_ptr<Call::Impl>(shared_from_this(), &establishing_), number};
}

void Link::EstablishingCalls::cancel(std::uint64_t number) noexcept {
  if (link.is_forked()) return;
  {
    const std::lock_guard lock(link.state_.mutex);
    link.state_.establishments.cancel(number);
  }
  link.driver_.wake();
}

// Calls.

Link::Submitted Link::submit(const wire::RequestBody& body, Duration timeout, Ticket&& ticket) {
  Submitted submitted;
  bool is_sent = false;
  {
    const std::lock_guard lock(state_.mutex);
    if (state_.cancels.covers(ticket.serial, ticket.mark.get())) state_.cancels.note_pending();
    std::optional<std::uint64_t> slot;
    const protocol::Receipt receipt = ticket.receipt;
    const bool is_lasting = ticket.is_lasting;
    try {
      slot = state_.pending.add(std::move(ticket));
      submitted.slot = *slot;
      submitted.call = is_lasting
                           ? state_.protocol->submit_lasting(body, world_->now(), *slot)
                           : state_.protocol->submit(body, timeout, world_->now(), *slot, receipt);
      state_.pending.begin(*slot, submitted.call);
      is_sent = send_directly();
    } catch (const std::bad_alloc&) {
      break_down();  // before the I/O thread can send a half of it
      if (slot) ticket = state_.pending.take(*slot);
      throw;
    }
  }
  if (!is_sent) driver_.wake();
  return submitted;
}

Link::Submitted Link::give_back(CallId call, std::string&& value, Ticket&& ticket) {
  Submitted submitted{call, 0};
  ticket.cancellation = wire::CancelTake{0, true};
  try {
    const std::lock_guard lock(state_.mutex);
    submitted.slot = state_.pending.add(std::move(ticket));
    Outcome taken{std::move(value), protocol::Fate::answered, call};
    state_.pending.give_back(submitted.slot, std::move(taken), *state_.protocol, world_->now());
  } catch (const std::bad_alloc&) {
    break_down();
    throw;
  }
  driver_.wake();
  return submitted;
}

/// returns  whether the I/O thread has nothing to do
bool Link::send_directly() {
  if (!state_.direct.is_allowed() || state_.is_broken || state_.cancels.is_pending()) return false;
  if (state_.protocol->next_deadline() < state_.armed_for) return false;
  return state_.direct.write(state_.protocol->effects(), *world_);
}

Call Link::handle_of(const Submitted& submitted) {
  return {std::shared_ptr<Call::Impl>(shared_from_this(), &submitted_), submitted.call};
}

void Link::SubmittedCalls::cancel(std::uint64_t number) noexcept {
  if (link.is_forked()) return;
  LinkState& state = link.state_;
  try {
    const std::lock_guard lock(state.mutex);
    state.pending.cancel(number, *state.protocol, link.world_->now());
  } catch (const std::bad_alloc&) {
    return link.break_down();
  }
  link.driver_.wake();
}

void Link::give_up(const Submitted& submitted) {
  Ticket ticket;
  bool is_unsent = false;
  {
    const std::lock_guard lock(state_.mutex);
    if (!state_.pending.has(submitted.slot, submitted.call)) return;
    const bool has_taken = state_.pending.has_taken(submitted.slot);
    ticket = state_.pending.take(submitted.slot);
    const auto* const call = state_.protocol->requests().find(submitted.call);
    is_unsent = call != nullptr && !call->is_sent();
    try {
      if (has_taken) {
        state_.protocol->conclude(submitted.call, protocol::Verdict::refused, world_->now());
      } else {
        state_.protocol->cancel(submitted.call, world_->now());
      }
    } catch (const std::bad_alloc&) {
      break_down();
    }
  }
  driver_.wake();
  const auto code = is_unsent ? ErrorCode::unavailable : ErrorCode::outcome_unknown;
  complete(ticket, {failure(code,
                            "the I/O thread did not get to run; is it blocked by an inline "
                            "handler?"),
                    is_unsent ? protocol::Fate::unsent : protocol::Fate::in_doubt});
}

void Link::conclude(CallId call, protocol::Verdict verdict) {
  bool is_idle = false;
  try {
    const std::lock_guard lock(state_.mutex);
    state_.protocol->conclude(call, verdict, world_->now());
    is_idle = state_.protocol->effects().empty();
  } catch (const std::bad_alloc&) {
    break_down();
  }
  if (!is_idle) driver_.wake();
}

void Link::break_down() noexcept {
  state_.is_broken = true;
  world_->ring();
}

void Link::cancel() noexcept {
  if (is_forked()) return;
  state_.cancels.request_all();
  world_->ring();
}

void Link::cancel(CancelMark& mark) noexcept {
  if (is_forked()) return;
  state_.cancels.request(mark);
  world_->ring();
}

void Link::cancel_closed(CancelMark& mark) {
  mark.close();
  state_.cancels.request(mark);
  driver_.wake();  // to ring would wake all links of the thread
}

void Link::close() {
  if (is_forked()) return;
  try {
    const std::lock_guard lock(state_.mutex);
    if (!std::exchange(state_.is_closing, true)) state_.protocol->close(world_->now());
  } catch (const std::bad_alloc&) {
    break_down();
  }
  if (world_->run_here([this] { driver_.turn(); })) return;
  driver_.wake();
  if (would_deadlock()) return;
  std::unique_lock lock(state_.mutex);
  state_.finished.wait_for(lock, goodbye_patience, [this] { return state_.is_finished; });
}

bool Link::would_deadlock() const {
  return Handlers::is_inside_inline_handler() || world_->would_deadlock();
}

Limits Link::limits() const {
  const std::lock_guard lock(state_.mutex);
  return state_.limits;
}

std::uint64_t Link::incarnation() const {
  const std::lock_guard lock(state_.mutex);
  return state_.incarnation;
}

}  // namespace muster::client
