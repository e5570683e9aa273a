#include "client/link/driver.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "client/failure.h"
#include "net/loop.h"

// A turn carries out what has gathered, and what comes of that: connecting, writing, ending calls.
//
// When memory is out in the midst of a turn or of a call, nobody knows what was done and what was
// not. So what the link holds is thrown away: the session ends here and, as after any lost
// connection, at the server; every call ends, and `establish` begins anew.

namespace muster::client {
namespace {

constexpr std::string_view in_the_midst = "memory was out in the midst of a call";
constexpr int passes_max = 16;  // of a turn, in which callers bring more: then others have theirs

/// Its code alone where there is no memory for the texts.
Error copy_of(const Error& error) noexcept {
  try {
    return error;
  } catch (const std::bad_alloc&) {
    Error bare;
    bare.code = error.code;
    return bare;
  }
}

}  // namespace

Driver::Driver(const StoreOptions& options, World& world, const Handlers& handlers,
               LinkState& state)
    : options_(options), world_(world), handlers_(handlers), state_(state) {}

void Driver::wake() noexcept {
  const bool looks_again = world_.on_io_thread() && is_in_turn_;
  if (looks_again || is_woken_.exchange(true)) return;
  turn_task_.hold(owner_.lock());
  world_.post(turn_task_);
}

/// Once, or again from where memory was out.
void Driver::start() {
  if (failure_number_ == 0) {
    failure_number_ = world_.on_failure([this, owner = owner_](auto why) {
      if (const auto held = owner.lock()) fail(why);
    });
  }
  if (ring_number_ == 0) {
    ring_number_ = world_.on_ring([this, owner = owner_] {
      const auto held = owner.lock();
      if (held && (state_.cancels.is_pending() || state_.is_broken)) turn();
    });
  }
  if (options_.busy_poll > Duration::zero() && !polls_busily_) {
    world_.begin_busy_poll(options_.busy_poll);
    polls_busily_ = true;
  }
  is_started_ = true;
}

void Driver::turn() {
  try {
    if (!is_started_) start();
  } catch (const std::bad_alloc&) {
    return net::insist([this] { fail("memory was out when it began"); });
  }
  if (state_.is_broken) fail(in_the_midst);
  if (state_.cancels.take()) {
    const std::lock_guard lock(state_.mutex);
    state_.pending.cancel(state_.cancels, *state_.protocol, world_.now());
    state_.establishments.cancel(state_.cancels);
  }
  pump();
}

void Driver::apply(const protocol::Input& input) {
  {
    const std::lock_guard lock(state_.mutex);
    if (!state_.is_broken) state_.protocol->apply(input, world_.now());
  }
  pump();
}

void Driver::pump() {
  is_in_turn_ = true;
  bool is_closed = false;  // and what closing brought, such as the goodbye, has been carried out
  bool somebody_waits = false;
  bool is_done = false;
  for (int pass = 0; pass < passes_max && !is_done; ++pass) {
    if (state_.is_broken) fail(in_the_midst);
    std::vector<protocol::Effect> effects = std::exchange(spare_effects_, {});
    {
      const std::lock_guard lock(state_.mutex);
      if (state_.is_broken) continue;
      protocol::Effects& waiting = state_.protocol->effects();
      state_.direct.forbid();
      if (state_.direct.has_leftover()) connections_.send(state_.direct.take_leftover());
      for (std::string& bytes : connections_.spare()) waiting.give_spare(std::move(bytes));
      connections_.spare().clear();
      effects = waiting.take(std::move(effects));
      is_closed = state_.is_closing;
      somebody_waits = !state_.establishments.empty();
    }
    is_done = effects.empty();
    for (protocol::Effect& effect : effects) {
      std::visit([this](auto& what) { execute(what); }, effect);
    }
    effects.clear();
    spare_effects_ = std::move(effects);
  }
  is_in_turn_ = false;
  connections_.flush();
  if (somebody_waits) settle_establishments();
  if (is_closed && is_done) finish();
  if (!is_done) wake();
  await_next();
}

void Driver::settle_establishments() {
  std::vector<std::pair<Establishments::Waiting, Result<void>>> settled;
  const std::string awaited = world_.awaited();
  {
    const std::lock_guard lock(state_.mutex);
    const protocol::Protocol& protocol = *state_.protocol;
    settled = state_.establishments.take_settled(protocol.session(), protocol.established(),
                                                 world_.now(), awaited);
  }
  for (auto& [waiting, outcome] : settled) waiting.done(std::move(outcome));
}

/// Lets others write, and sees to it that time is looked at.
void Driver::await_next() {
  Instant next = base::far_future;
  {
    const std::lock_guard lock(state_.mutex);
    if (state_.is_finished) return;
    protocol::Protocol& protocol = *state_.protocol;
    const bool is_clear = connections_.is_clear() && protocol.established() &&
                          protocol.effects().empty() && !state_.is_broken && !state_.is_closing;
    if (is_clear) {
      state_.direct.allow(connections_.current()->descriptor());
    } else {
      state_.direct.forbid();
    }
    next = std::min(protocol.next_deadline(), state_.pending.next_deadline());
    next = std::min(next, state_.establishments.next_deadline());
    if (protocol.established()) next = std::min(next, world_.next_look_for_key());
    if (next >= state_.armed_for) return;  // an early turn does no harm
    state_.armed_for = next;
  }
  world_.wake_at(next, [this, owner = owner_] {
    if (const auto held = owner.lock()) time_has_come();
  });
}

void Driver::time_has_come() {
  bool is_established = false;
  {
    const std::lock_guard lock(state_.mutex);
    state_.armed_for = base::far_future;
    state_.pending.give_up_cancelled(*state_.protocol, world_.now());
    is_established = state_.protocol->established();
  }
  if (is_established && world_.has_newer_key()) return apply(protocol::NewKey{});
  apply(protocol::Advance{});
}

void Driver::finish() {
  {
    const std::lock_guard lock(state_.mutex);
    if (state_.is_finished) return;
  }
  world_.cancel_connect();
  connections_.close();
  connections_.attempt(nullptr);
  connections_.close_set_aside();
  world_.cancel_wake();
  world_.forget_ring(ring_number_);
  world_.forget_failure(failure_number_);
  if (std::exchange(polls_busily_, false)) world_.end_busy_poll(options_.busy_poll);
  state_.watchers.tell(
      {wire::EventKind::session_ended, 0, failure(ErrorCode::closed, "the store was closed")});
  const std::lock_guard lock(state_.mutex);
  state_.is_finished = true;
  state_.finished.notify_all();
}

void Driver::fail(std::string_view why) {
  const std::string line = "the session was given up: " + std::string(why) +
                           "; free memory, then reopen the store and form the groups again";
  const Error ended = failure(ErrorCode::resource_exhausted, line);
  PendingCalls pending;
  std::vector<Establishments::Waiting> establishing;
  {
    const std::lock_guard lock(state_.mutex);
    state_.direct = DirectWriter();
    state_.armed_for = base::far_future;
    if (!state_.is_finished) {
      state_.protocol = std::make_unique<protocol::Protocol>(*state_.protocol, ended);
    }
    state_.is_broken = false;
    if (state_.is_finished) return;
    if (state_.is_closing) state_.protocol->close(world_.now());
    std::swap(pending, state_.pending);
    establishing = state_.establishments.take_all();
  }
  is_in_turn_ = false;
  world_.cancel_connect();
  connections_.abort();
  world_.cancel_wake();
  wake();
  handlers_.log(LogLevel::error, line);
  const Error in_doubt = failure(ErrorCode::outcome_unknown, line);
  pending.end_all([&in_doubt](Ticket& ticket) {
    complete(ticket, {copy_of(in_doubt), protocol::Fate::in_doubt});
  });
  for (Establishments::Waiting& waiting : establishing) {
    waiting.done(Result<void>(copy_of(ended)));
  }
  protocol::Notify end{{wire::EventKind::session_ended, 0, ended}};
  execute(end);
}

}  // namespace muster::client
