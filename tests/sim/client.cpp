#include "client.h"

#include <utility>

namespace muster::sim {
ProcessId id_of(const Identity& identity) {
  ProcessId id;
  id.bytes[0] = static_cast<std::uint8_t>(identity.process + 1);
  id.bytes[1] = static_cast<std::uint8_t>((identity.process + 1) >> 8);
  return id;
}

namespace {

protocol::Options options_of(const Identity& identity) {
  protocol::Options options;
  options.where = "sim:1";
  options.jitter_seed = identity.number;
  options.identity.process.id = id_of(identity);
  options.identity.process.host = "host" + std::to_string(identity.process);
  options.identity.process.pid = static_cast<std::uint32_t>(identity.process);
  options.identity.name_space = identity.name_space;
  options.identity.role = identity.role;
  return options;
}

}  // namespace

Client::Client(const Identity& identity, Scheduler& scheduler, Network& network, Server& server,
               Clock clock)
    : number_(identity.number),
      scheduler_(scheduler),
      network_(network),
      server_(server),
      clock_(clock),
      protocol_(options_of(identity)),
      alarm_(scheduler, [this] {
        when_running([this] {
          if (alarm_.is_due()) apply(protocol::Advance{});
        });
      }) {}

void Client::open() {
  protocol_.open(now());
  carry_out_all();
}

protocol::CallId Client::call(const wire::RequestBody& body, Duration timeout, Done done,
                              protocol::Receipt receipt) {
  const bool forms =
      std::holds_alternative<wire::Join>(body) || std::holds_alternative<wire::Regroup>(body);
  if (forms) receipt = protocol::Receipt::by_caller;
  const auto id = protocol_.submit(body, timeout, now(), 0, receipt);
  const Duration slack = protocol_.session().server().limits.slack;
  pending_.emplace(id, Pending{std::move(done), now() + timeout + slack, forms});
  carry_out_all();
  return id;
}

void Client::call_lasting(const wire::RequestBody& body, Done done) {
  const auto id = protocol_.submit_lasting(body, now());
  pending_.emplace(id, Pending{std::move(done), base::far_future - base::timeout_max, false});
  carry_out_all();
}

void Client::conclude(protocol::CallId call, protocol::Verdict verdict) {
  protocol_.conclude(call, verdict, now());
  carry_out_all();
}

void Client::cancel(protocol::CallId call) {
  protocol_.cancel(call, now());
  carry_out_all();
}

void Client::close() {
  protocol_.close(now());
  carry_out_all();
  drop_set_aside();
}

void Client::reopen() {
  incarnation_ = 0;
  protocol_.open(now());
  carry_out_all();
}

void Client::die(Death death) {
  is_dead_ = true;
  alarm_.unset();
  ++attempt_;
  deferred_.clear();
  pending_.clear();
  if (death == Death::of_process) {
    drop(network_, connection_);
    drop(network_, next_);
    drop_set_aside();
  }
  connection_ = next_ = 0;
  if (death == Death::of_machine) network_.cut(number_, false, false);
}

void Client::stop_for(Duration duration) {
  stopped_until_ = scheduler_.now() + duration;
  scheduler_.at(stopped_until_, [this] {
    while (!is_stopped() && !deferred_.empty()) {
      const auto what = std::move(deferred_.front());
      deferred_.pop_front();
      what();
    }
  });
}

void Client::when_running(std::function<void()> what) {
  if (is_dead_) return;
  if (is_running()) return what();
  deferred_.push_back(std::move(what));
}

void Client::apply(const protocol::Input& input) {
  protocol_.apply(input, now());
  carry_out_all();
}

/// Effects that come of effects wait their turn.
void Client::carry_out_all() {
  if (is_carrying_out_) return;
  is_carrying_out_ = true;
  for (auto effects = protocol_.effects().take(); !effects.empty();
       effects = protocol_.effects().take()) {
    for (const auto& effect : effects) {
      std::visit([this](const auto& each) { carry_out(each); }, effect);
    }
  }
  is_carrying_out_ = false;
  if (protocol_.requests().count() != pending_.size()) violated("a call was lost");
  arm();
}

void Client::arm() {
  const Instant when = protocol_.next_deadline();
  alarm_.unset();
  if (when == base::far_future) return;
  const Instant real = clock_.real(when);
  if (real < scheduler_.now()) violated("a deadline in the past");
  if (real != base::far_future) alarm_.set(real);
}

void Client::carry_out(const protocol::Connect&) {
  drop(network_, next_);
  attempt(++attempt_);
}

/// TCP asks again after a second when nothing came back.
void Client::attempt(std::uint64_t number) {
  const bool is_lost = network_.is_blocked(number_);
  const Duration wait = is_lost ? Duration(std::chrono::seconds(1)) : network_.delay();
  scheduler_.after(wait, [this, number, is_lost] {
    when_running([this, number, is_lost] {
      if (number != attempt_) return;
      if (is_lost) return attempt(number);
      connect();
    });
  });
}

void Client::connect() {
  if (!server_.is_up()) {
    return apply(protocol::ConnectFailed{protocol::ConnectFailure::refused, "refused"});
  }
  const auto connection = network_.open(number_);
  next_ = connection;
  network_.set_end(connection, Side::client,
                   {[this, connection](std::string_view bytes) { received(connection, bytes); },
                    [this, connection] {
                      when_running([this, connection] {
                        std::erase(set_aside_, connection);
                        if (connection != connection_ && connection != next_) return;
                        const bool of_attempt = connection == next_;
                        (of_attempt ? next_ : connection_) = 0;
                        apply(protocol::Disconnected{true, "reset", of_attempt});
                      });
                    }});
  server_.accept(connection);
  apply(protocol::Connected{"sim:1"});
}

void Client::received(Network::ConnectionId connection, std::string_view bytes) {
  const auto take = [this, connection](std::string_view what) {
    const bool of_attempt = connection == next_;
    if (of_attempt || connection == connection_) apply(protocol::Received{what, of_attempt});
  };
  if (is_running()) return take(bytes);
  when_running([take, owned = std::string(bytes)] { take(owned); });
}

void Client::drop(Network& network, Network::ConnectionId& connection) {
  if (connection != 0) network.close(std::exchange(connection, 0), Side::client);
}

void Client::drop_set_aside() {
  for (const auto connection : std::exchange(set_aside_, {})) {
    network_.close(connection, Side::client);
  }
}

void Client::carry_out(const protocol::Disconnect& effect) {
  using Which = protocol::Disconnect::Which;
  if (effect.which != Which::attempt) drop(network_, connection_);
  if (effect.which == Which::standing) return;
  ++attempt_;
  if (effect.is_silent && next_ != 0) set_aside_.push_back(std::exchange(next_, 0));
  drop(network_, next_);
}

void Client::carry_out(const protocol::Transmit& effect) {
  const auto connection = effect.of_attempt ? next_ : connection_;
  if (connection == 0) {
    violated("bytes for no connection");
  } else {
    network_.send(connection, Side::client, effect.bytes);
  }
}

void Client::carry_out(const protocol::Complete& effect) {
  auto found = pending_.extract(effect.call);
  if (found.empty()) {
    violated("a call was over twice");
    return;
  }
  const Instant latest = std::max(found.mapped().latest, clock_.shows(stopped_until_));
  if (now() > latest + Duration(2)) {  // what the rounding of two clocks comes to
    violated("a call took longer than its deadline and the slack");
  }
  held_ = effect.is_held ? effect.call : 0;
  is_refused_ = false;
  found.mapped().done(effect.reply, effect.fate);
  held_ = 0;
  if (!effect.is_held || !found.mapped().forms) return;
  using Verdict = protocol::Verdict;
  protocol_.conclude(effect.call, is_refused_ ? Verdict::refused : Verdict::accepted, now());
}

void Client::carry_out(const protocol::Notify& effect) {
  if (notified) notified(effect.event);
  if (effect.event.kind == wire::EventKind::session_ended) drop_set_aside();
}

void Client::carry_out(const protocol::Established& effect) {
  drop(network_, connection_);
  connection_ = std::exchange(next_, 0);
  drop_set_aside();
  if (effect.resumed) {
    ++resumed_count_;
    return resumed();
  }
  incarnation_ = protocol_.session().server().incarnation;
  ++session_number_;
}

void Client::carry_out(const protocol::Log& effect) {
  if (logged) logged(effect.line);
}

}  // namespace muster::sim
