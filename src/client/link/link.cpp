#include "client/link/link.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/monotonic_now.h"
#include "base/random.h"
#include "base/thread.h"
#include "client/failure.h"
#include "client/link/link_options.h"
#include "net/cores.h"
#include "net/io_thread.h"
#include "net/loop.h"

// Threads: a caller encodes its request under the mutex and posts one turn to the I/O thread,
// unless one is posted already. A turn carries out what has gathered: connecting, writing, ending
// calls. The mutex is never held while somebody else's code runs.

namespace muster::client {
namespace {

using base::monotonic_now;

constexpr std::size_t shared_bytes_min = 64 * 1024;  // shorter ones are copied into one write
constexpr std::string_view in_the_midst = "memory was out in the midst of a call";
constexpr Duration linger{std::chrono::seconds(1)};  // for a goodbye behind unsent bytes
constexpr std::size_t set_aside_max = 16;
constexpr std::size_t spare_transmits_max = 3;
constexpr int passes_max = 16;  // of a turn, in which callers bring more: then others have theirs

/// The protocol does not know why it was told to cancel.
void amend(Error& error, const Ticket& ticket, protocol::Fate fate) {
  if (ticket.mark && ticket.mark->is_closed()) {
    error.code = ErrorCode::closed;
    error.detail = "the group's handle is gone";
  } else if (ticket.cancellation && fate == protocol::Fate::in_doubt &&
             error.code == ErrorCode::cancelled) {
    error.code = ErrorCode::outcome_unknown;
    error.detail = "cancelled, and the server did not say what became of the call";
  }
}

std::optional<Error> refusal_of(const StoreOptions& options) {
  if (options.name_space.size() > wire::name_bytes_max) {
    return invalid_argument("namespace: at most 64 bytes");
  }
  if (options.label.size() > wire::name_bytes_max) {
    return invalid_argument("label: at most 64 bytes");
  }
  if (options.timeout < Duration::zero()) return invalid_argument("timeout: not negative");
  if (options.busy_poll < Duration::zero() || options.busy_poll > busy_poll_max) {
    return invalid_argument("busy_poll: 0 to 100 ms");
  }
  return std::nullopt;
}

}  // namespace

Result<std::shared_ptr<Link>> Link::create(std::string_view address, StoreOptions options) {
  auto parsed = net::parse_address(address);
  if (!parsed) return std::move(parsed).error();
  if (!parsed->is_unix() && parsed->port == 0) {
    return invalid_argument("address \"" + to_string(*parsed) +
                            "\": nobody can be reached at port 0");
  }
  if (auto refused = refusal_of(options)) return *std::move(refused);
  if (!options.io_thread) options.io_thread = IoThread::create();
  if (!options.io_thread) {
    return failure(ErrorCode::resource_exhausted, "the system has no thread or descriptor left");
  }
  return std::shared_ptr<Link>(new Link(*std::move(parsed), std::string(address), options));
}

Link::Link(net::Address address, std::string address_text, StoreOptions options)
    : address_(std::move(address)),
      address_text_(std::move(address_text)),
      options_(std::move(options)),
      process_(base::own_process(options_.label)),
      io_thread_(options_.io_thread),
      handlers_(options_, *io_thread_),
      loop_(io_thread_->impl().loop()),
      spinners_max_(static_cast<int>(net::usable_cores()) - 1),
      protocol_(std::make_unique<protocol::Protocol>(
          protocol_options(address_text_, options_, process_))),
      timer_(loop_) {
  limits_ = limits_of(wire::ServerLimits{});
  spare_bytes_.reserve(spare_transmits_max);
}

Link::~Link() = default;

// Calls of any thread.

void Link::wake() noexcept {
  if (is_in_turn() || is_woken_.exchange(true)) return;
  turn_.hold(shared_from_this());
  loop_.post(turn_);
}

bool Link::is_in_turn() const { return io_thread_->impl().on_io_thread() && is_in_turn_; }

CallId Link::submit(const wire::RequestBody& body, Duration timeout, Ticket&& ticket) {
  CallId id = 0;
  bool is_sent = false;
  {
    const std::lock_guard lock(mutex_);
    const bool is_cancelled =
        mark_.covers(ticket.serial) || (ticket.mark && ticket.mark->covers(ticket.serial));
    if (is_cancelled) is_cancelling_ = true;
    try {
      id = protocol_->submit(body, timeout, monotonic_now());
      add_pending(id).ticket = std::move(ticket);
      is_sent = send_directly();
    } catch (const std::bad_alloc&) {
      break_down();  // before the I/O thread can send a half of it
      if (const auto found = pending_.find(id); found != pending_.end()) {
        ticket = take_ticket(found);
      }
      throw;
    }
  }
  if (!is_sent) wake();
  return id;
}

Link::Pending& Link::add_pending(CallId id) {
  auto node = spare_pending_.take();
  if (node.empty()) return pending_[id];
  node.key() = id;
  return pending_.insert(std::move(node)).position->second;
}

Ticket Link::take_ticket(PendingCalls::iterator pending) {
  Ticket ticket = std::move(pending->second.ticket);
  pending->second = Pending();
  spare_pending_.keep(pending_.extract(pending));
  return ticket;
}

/// returns  whether the I/O thread has nothing to do
bool Link::send_directly() {
  const bool is_awaited = is_broken_ || is_cancelling_ || protocol_->next_deadline() < armed_for_;
  if (direct_fd_ < 0 || is_awaited) return false;
  auto only = protocol_->effects().take_transmit();
  if (!only) return false;
  const std::size_t sent = net::Connection::send_now(direct_fd_, only->bytes);
  if (sent == only->bytes.size()) {
    protocol_->effects().give_spare(std::move(only->bytes));
    return true;
  }
  leftover_ = std::move(only->bytes);
  leftover_.erase(0, sent);
  direct_fd_ = -1;
  return false;
}

void Link::give_up(CallId call) {
  Ticket ticket;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(call);
    if (found == pending_.end()) return;
    ticket = take_ticket(found);
    try {
      protocol_->cancel(call, monotonic_now());
    } catch (const std::bad_alloc&) {
      break_down();
    }
  }
  wake();
  Outcome outcome{failure(ErrorCode::outcome_unknown,
                          "the I/O thread did not get to run; is it blocked by an inline handler?"),
                  protocol::Fate::in_doubt};
  outcome.reply.error().decided_by = "client";
  complete(ticket, std::move(outcome));
}

void Link::cancel() noexcept { cancel(mark_); }

void Link::cancel(CancelMark& mark) noexcept {
  if (is_forked()) return;
  mark.raise_to(last_serial_.load() + 1);
  is_cancelling_.store(true);
  loop_.bell().ring();
}

void Link::cancel_closed(CancelMark& mark) {
  mark.close();
  mark.raise_to(last_serial_.load() + 1);
  is_cancelling_.store(true);
  wake();  // the bell would wake all links of the thread
}

void Link::close() {
  if (is_forked()) return;
  try {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(is_closing_, true)) protocol_->close(monotonic_now());
  } catch (const std::bad_alloc&) {
    break_down();
  }
  if (io_thread_->impl().may_run()) return io_thread_->impl().run_here([this] { turn(); });
  wake();
  if (would_deadlock()) return;
  std::unique_lock lock(mutex_);
  finished_.wait_for(lock, goodbye_patience, [this] { return is_finished_; });
}

bool Link::is_forked() const { return owner_.is_forked(); }

void Link::close_inherited() { io_thread_->impl().close_inherited_sockets(); }

bool Link::would_deadlock() const {
  return Handlers::is_inside_inline_handler() || io_thread_->impl().would_deadlock();
}

Limits Link::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

std::uint64_t Link::incarnation() const {
  const std::lock_guard lock(mutex_);
  return incarnation_;
}

// The I/O thread.

/// Once, or again from where memory was out.
void Link::start() {
  if (failure_number_ == 0) {
    failure_number_ = loop_.on_failure([weak = weak_from_this()](auto why) {
      if (const auto self = weak.lock()) self->fail(why);
    });
  }
  if (bell_number_ == 0) {
    bell_number_ = loop_.bell().add([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && (self->is_cancelling_ || self->is_broken_)) self->turn();
    });
  }
  if (options_.busy_poll > Duration::zero() && !polls_busily_) {
    loop_.begin_busy_poll(options_.busy_poll);
    polls_busily_ = true;
  }
  connector_ = net::Connector::create(loop_, address_, {});
}

void Link::turn() {
  try {
    if (!connector_) start();
  } catch (const std::bad_alloc&) {
    return net::insist([this] { fail("memory was out when it began"); });
  }
  if (is_broken_) fail(in_the_midst);
  if (is_cancelling_.exchange(false)) cancel_marked();
  pump();
}

void Link::apply(const protocol::Input& input) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_broken_) protocol_->apply(input, monotonic_now());
  }
  pump();
}

void Link::pump() {
  is_in_turn_ = true;
  bool is_closed = false;  // and what closing brought, such as the goodbye, has been carried out
  bool somebody_waits = false;
  bool is_done = false;
  for (int pass = 0; pass < passes_max && !is_done; ++pass) {
    if (is_broken_) fail(in_the_midst);
    std::vector<protocol::Effect> effects = std::exchange(spare_effects_, {});
    {
      const std::lock_guard lock(mutex_);
      if (is_broken_) continue;
      direct_fd_ = -1;
      if (!leftover_.empty()) send(std::exchange(leftover_, {}));
      for (std::string& bytes : spare_bytes_) protocol_->effects().give_spare(std::move(bytes));
      spare_bytes_.clear();
      effects = protocol_->effects().take(std::move(effects));
      is_closed = is_closing_;
      somebody_waits = !establishing_.empty();
    }
    is_done = effects.empty();
    for (protocol::Effect& effect : effects) {
      std::visit([this](auto& what) { execute(what); }, effect);
    }
    effects.clear();
    spare_effects_ = std::move(effects);
  }
  is_in_turn_ = false;
  if (connection_) connection_->flush();
  if (somebody_waits) settle_establishing();
  if (is_closed && is_done) finish();
  if (!is_done) wake();
  end_turn();
}

void Link::execute(protocol::Connect&) {
  if (connection_) connection_->close();
  connection_.reset();
  {
    const std::lock_guard lock(mutex_);
    ++attempt_count_;
  }
  connector_->connect([weak = weak_from_this()](net::Connector::Outcome outcome) {
    if (const auto self = weak.lock()) self->connected(std::move(outcome));
  });
}

void Link::connected(net::Connector::Outcome outcome) {
  if (const auto* error = std::get_if<net::ConnectError>(&outcome)) {
    protocol::ConnectFailed failed;
    failed.detail = error->detail;
    switch (error->kind) {
      case net::ConnectFailure::refused: failed.kind = protocol::ConnectFailure::refused; break;
      case net::ConnectFailure::silent: failed.kind = protocol::ConnectFailure::silent; break;
      case net::ConnectFailure::not_resolved:
        failed.kind = protocol::ConnectFailure::not_resolved;
        break;
    }
    return apply(failed);
  }
  connection_ = std::get<std::shared_ptr<net::Connection>>(std::move(outcome));
  const net::Connection* const current = connection_.get();
  net::Connection::Callbacks callbacks;
  callbacks.received = [weak = weak_from_this(), current](std::string_view bytes) {
    const auto self = weak.lock();
    if (self && self->connection_.get() == current) self->apply(protocol::Received{bytes});
  };
  callbacks.closed = [weak = weak_from_this(), current](net::CloseCause cause, std::string why) {
    const auto self = weak.lock();
    if (!self || self->connection_.get() != current) return;
    self->let_nobody_send();
    self->connection_.reset();
    self->apply(protocol::Disconnected{cause == net::CloseCause::by_peer, std::move(why)});
  };
  connection_->start(std::move(callbacks));
  apply(protocol::Connected{connection_->peer()});
}

void Link::execute(protocol::Disconnect& effect) {
  connector_->cancel();
  if (!connection_) return;
  if (effect.is_silent) {
    if (set_aside_.size() == set_aside_max) close_one_set_aside();
    set_aside_.push_back(std::move(connection_));
  } else {
    connection_->close_after_flush(linger);
  }
  connection_.reset();
}

/// The second: the first is the one that the session was on.
void Link::close_one_set_aside() {
  set_aside_[1]->close();
  set_aside_.erase(set_aside_.begin() + 1);
}

void Link::close_set_aside() {
  for (const auto& connection : set_aside_) connection->close();
  set_aside_.clear();
}

void Link::execute(protocol::Transmit& effect) { send(std::move(effect.bytes)); }

void Link::send(std::string&& bytes) {
  if (!connection_) return;
  if (bytes.size() < shared_bytes_min) {
    connection_->send(bytes);
    if (spare_bytes_.size() < spare_transmits_max) spare_bytes_.push_back(std::move(bytes));
    return;
  }
  auto shared = std::make_shared<const std::string>(std::move(bytes));
  connection_->send(net::SharedBytes{*shared, shared});
}

void Link::execute(protocol::Complete& effect) {
  Ticket ticket;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(effect.call);
    if (found == pending_.end()) return;
    ticket = take_ticket(found);
  }
  complete(ticket, {std::move(effect.reply), effect.fate});
}

void Link::complete(Ticket& ticket, Outcome outcome) {
  if (!outcome.reply) amend(outcome.reply.error(), ticket, outcome.fate);
  if (ticket.settle) ticket.settle(outcome);
  if (ticket.done) ticket.done(std::move(outcome));
}

void Link::execute(protocol::Established&) {
  connector_->mark_good();
  close_set_aside();
  const std::lock_guard lock(mutex_);
  const wire::ServerHello& server = protocol_->session().server();
  limits_ = limits_of(server.limits);
  incarnation_ = server.incarnation;
  if (connection_) connection_->set_user_timeout(server.limits.session_timeout);
}

void Link::execute(protocol::Log& effect) { handlers_.log(effect.level, effect.line); }

void Link::let_nobody_send() {
  const std::lock_guard lock(mutex_);
  direct_fd_ = -1;
}

// Time.

/// Sets the timer, and lets others write.
void Link::end_turn() {
  Instant next = base::far_future;
  {
    const std::lock_guard lock(mutex_);
    if (is_finished_) return;
    const bool is_clear = connection_ && connection_->is_open() &&
                          connection_->unsent_bytes() == 0 && protocol_->established() &&
                          protocol_->effects().empty() && !is_broken_ && !is_closing_;
    direct_fd_ = is_clear ? connection_->descriptor() : -1;
    next = std::min(protocol_->next_deadline(), give_up_at_);
    for (const Establishing& waiting : establishing_) next = std::min(next, waiting.deadline);
    if (next >= armed_for_) return;  // an early turn does no harm
    armed_for_ = next;
  }
  timer_.set(next, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->give_up_cancelled();
    self->apply(protocol::Advance{});
  });
}

// Closing.

void Link::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (is_finished_) return;
  }
  if (connector_) connector_->cancel();
  if (connection_) connection_->close_after_flush(linger);
  connection_.reset();
  close_set_aside();
  timer_.cancel();
  loop_.bell().remove(bell_number_);
  loop_.forget(failure_number_);
  if (std::exchange(polls_busily_, false)) loop_.end_busy_poll(options_.busy_poll);
  tell_watchers(
      {wire::EventKind::session_ended, 0, failure(ErrorCode::closed, "the store was closed")});
  const std::lock_guard lock(mutex_);
  is_finished_ = true;
  finished_.notify_all();
}

}  // namespace muster::client
