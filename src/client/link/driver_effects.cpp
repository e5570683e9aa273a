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
  connections_.replace(nullptr);
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
  connections_.replace(std::get<std::shared_ptr<net::Channel>>(std::move(outcome)));
  net::Channel* const current = connections_.current();
  net::Channel::Callbacks callbacks;
  callbacks.received = [this, owner = owner_, current](std::string_view bytes) {
    const auto held = owner.lock();
    if (held && connections_.current() == current) apply(protocol::Received{bytes});
  };
  callbacks.closed = [this, owner = owner_, current](net::CloseCause cause, std::string why) {
    const auto held = owner.lock();
    if (!held || connections_.current() != current) return;
    {
      const std::lock_guard lock(state_.mutex);
      state_.direct.forbid();
    }
    connections_.forget();
    apply(protocol::Disconnected{cause == net::CloseCause::by_peer, std::move(why)});
  };
  current->start(std::move(callbacks));
  apply(protocol::Connected{current->peer()});
}

void Driver::execute(protocol::Disconnect& effect) {
  world_.cancel_connect();
  if (effect.is_silent) {
    connections_.set_aside();
  } else {
    connections_.close();
  }
}

void Driver::execute(protocol::Transmit& effect) { connections_.send(std::move(effect.bytes)); }

void Driver::execute(protocol::Complete& effect) {
  Ticket ticket;
  {
    const std::lock_guard lock(state_.mutex);
    if (!state_.pending.has(effect.user_data, effect.call)) return;
    ticket = state_.pending.take(effect.user_data);
  }
  complete(ticket, {std::move(effect.reply), effect.fate});
}

void Driver::execute(protocol::Notify& effect) {
  const wire::Event& event = effect.event;
  state_.watchers.tell(event);
  if (event.kind != wire::EventKind::session_ended) return;
  connections_.close_set_aside();
  if (!options_.on_session_end) return;
  handlers_.dispatch("on_session_end",
                     [told = options_.on_session_end, error = event.error] { told(error); });
}

void Driver::execute(protocol::Established&) {
  world_.mark_good();
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
