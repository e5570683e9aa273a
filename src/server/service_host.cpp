#include "server/service_host.h"

#include <algorithm>
#include <utility>

#include "base/monotonic_now.h"
#include "net/address/unit.h"
#include "net/connection.h"

namespace muster::server {
ServiceHost::ServiceHost(net::Loop& loop, Settings settings)
    : loop_(loop), timer_(loop), service_(*this, std::move(settings)) {}

ServiceHost::~ServiceHost() {
  if (failure_number_ == 0) return;
  loop_.forget(failure_number_);
  loop_.end_busy_poll(service_.settings().busy_poll);
}

void ServiceHost::start(std::vector<net::Listening> listenings) {
  if (service_.is_closed()) return;  // before it came to that
  failure_number_ = loop_.on_failure([weak = weak_from_this()](auto why) {
    if (const auto self = weak.lock()) self->service_.fail(why);
  });
  const Duration busy_poll = service_.settings().busy_poll;
  if (busy_poll > Duration::zero()) loop_.begin_busy_poll(busy_poll);
  for (net::Listening& listening : listenings) listen(std::move(listening));
  service_.tick();
}

void ServiceHost::listen(net::Listening listening) {
  ServerLog& log = service_.log();
  log.line(LogLevel::info, "listening on " + to_string(listening.address()));
  const Duration user_timeout = user_timeout_of(service_.settings().core);
  const bool gives_options = listening.options() == net::Listening::Options::inherited;
  const auto accepted = [this, user_timeout, gives_options](net::UniqueFd fd,
                                                            const net::SocketAddress& address) {
    const net::UnitId unit = net::unit_of(fd.get(), address);
    service_.accepted(gives_options
                          ? net::Connection::accepted(loop_, std::move(fd), address)
                          : net::Connection::create(loop_, std::move(fd), address, user_timeout),
                      unit);
  };
  const auto refused = [&log](const std::string& detail) {
    if (!log.admits("the system", LogLevel::warning, base::monotonic_now())) return;
    log.line(LogLevel::warning, "out of resources: " + detail);
  };
  listeners_.push_back(net::Listener::create(loop_, std::move(listening), service_.farewell()));
  listeners_.back()->start({accepted, refused, [this] { return service_.make_room(); }});
}

base::Instant ServiceHost::now() const { return base::monotonic_now(); }

Duration ServiceHost::worked() const { return base::worked(); }

server::World::Turns ServiceHost::turns() const {
  return {loop_.longest_turn(), loop_.long_turns_count()};
}

void ServiceHost::wake_at(base::Instant when) {
  if (when == base::far_future) return timer_.cancel();
  timer_.set(when, [this] {
    const auto self = shared_from_this();
    service_.tick();
  });
}

void ServiceHost::wake_soon() {
  if (is_woken_soon_) return;
  loop_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->is_woken_soon_ = false;
    self->service_.continue_turn();
  });
  is_woken_soon_ = true;
}

void ServiceHost::stop_listening() {
  for (const auto& listener : listeners_) listener->close();
  listeners_.clear();
}

}  // namespace muster::server
