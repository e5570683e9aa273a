#include <utility>

#include "client/link/driver.h"
#include "client/link/link_options.h"

// What the protocol wants done.

namespace muster::client {
namespace {

protocol::ConnectFailure kind_of(net::ConnectFailure failure) {
  switch (failure) {
    case net::ConnectFailure::refused: return protocol::ConnectFailure::refused;
    case net::ConnectFailure::silent: return protocol::ConnectFailure::silent;
    case net::ConnectFailure::not_resolved: return protocol::ConnectFailure::not_resolved;
  }
  return protocol::ConnectFailure::silent;
}

}  // namespace

void Driver::execute(protocol::Connect&) {
  connections_.attempt(nullptr);
  {
    const std::lock_guard lock(state_.mutex);
    state_.establishments.count_attempt();
  }
  world_.connect([this, owner = owner_](World::Connected outcome) {
    if (const auto held = owner.lock()) connected(std::move(outcome));
  });
}

void Driver::connected(World::Connected outcome) {
  if (auto* const error = std::get_if<net::ConnectError>(&outcome)) {
    return apply(protocol::ConnectFailed{kind_of(error->kind), std::move(error->detail)});
  }
  connections_.attempt(std::get<std::shared_ptr<net::Channel>>(std::move(outcome)));
  net::Channel* const made = connections_.next();
  net::Channel::Callbacks callbacks;
  callbacks.received = [this, owner = owner_, made](std::string_view bytes) {
    const auto held = owner.lock();
    if (!held || !connections_.has(made)) return;
    apply(protocol::Received{bytes, connections_.next() == made});
  };
  callbacks.closed = [this, owner = owner_, made](net::CloseCause cause, std::string why) {
    const auto held = owner.lock();
    if (!held || !connections_.has(made)) return;
    const bool is_attempt = connections_.next() == made;
    if (!is_attempt) {
      const std::lock_guard lock(state_.mutex);
      state_.direct.forbid();
    }
    connections_.forget(made);
    const bool is_refused = cause == net::CloseCause::refused && !world_.try_another_key();
    apply(protocol::Disconnected{cause == net::CloseCause::by_peer, std::move(why), is_attempt,
                                 is_refused});
  };
  made->start(std::move(callbacks));
  apply(protocol::Connected{made->peer()});
}

void Driver::execute(protocol::Disconnect& effect) {
  using Which = protocol::Disconnect::Which;
  if (effect.which != Which::standing) {
    world_.cancel_connect();
    if (effect.is_silent) connections_.set_aside();
    connections_.attempt(nullptr);
  }
  if (effect.which != Which::attempt) connections_.close();
}

void Driver::execute(protocol::Transmit& effect) {
  if (effect.of_attempt) return connections_.greet(effect.bytes);
  connections_.send(std::move(effect.bytes));
}

void Driver::execute(protocol::Complete& effect) {
  std::optional<PendingCalls::Ended> ended;
  {
    const std::lock_guard lock(state_.mutex);
    ended = state_.pending.completed(effect, *state_.protocol, world_.now());
  }
  if (ended) complete(ended->ticket, std::move(ended->outcome));
}

void Driver::execute(protocol::Notify& effect) {
  const wire::Event& event = effect.event;
  state_.watchers.tell(event);
  if (event.kind != wire::EventKind::session_ended) return;
  connections_.close_set_aside();
  if (!options_.on_session_end || !state_.tells_session_ends) return;
  handlers_.dispatch("on_session_end",
                     [told = options_.on_session_end, error = event.error] { told(error); });
}

void Driver::execute(protocol::Established&) {
  world_.mark_good();
  connections_.promote();
  connections_.close_set_aside();
  const std::lock_guard lock(state_.mutex);
  const wire::ServerHello& server = state_.protocol->session().server();
  state_.limits = limits_of(server.limits);
  state_.incarnation = server.incarnation;
  if (net::Channel* const current = connections_.current()) {
    current->set_user_timeout(server.limits.session_timeout);
  }
}

void Driver::execute(protocol::Log& effect) { handlers_.log(effect.level, effect.line); }

}  // namespace muster::client
