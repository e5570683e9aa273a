#include "server/service_host.h"

#include <algorithm>
#include <utility>

#include "base/monotonic_now.h"
#include "net/address/unit.h"
#include "net/connection.h"

namespace muster::server {
namespace {

/// How long the kernel waits for acknowledgements. To it a peer that takes nothing is as one that
/// is gone: it must not end the connection before the service can say why.
Duration user_timeout(const core::Options& options) {
  return std::max(options.limits.session_timeout,
                  options.connections.stall_time_max + std::chrono::seconds(5));
}

}  // namespace

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
  ServerLog& log = service_.log();
  const auto refused = [&log](const std::string& detail) {
    if (!log.admits("the system", LogLevel::warning, base::monotonic_now())) return;
    log.line(LogLevel::warning, "out of resources: " + detail);
  };
  for (net::Listening& listening : listenings) {
    log.line(LogLevel::info, "listening on " + to_string(listening.address()));
    listeners_.push_back(net::Listener::create(loop_, std::move(listening), service_.farewell()));
    listeners_.back()->start({[this](net::UniqueFd fd, const net::SocketAddress& address) {
                                accepted(std::move(fd), address);
                              },
                              refused});
  }
  service_.tick();
}

void ServiceHost::accepted(net::UniqueFd fd, const net::SocketAddress& address) {
  std::string unit = net::unit_of(fd.get(), address);
  service_.accepted(net::Connection::create(loop_, std::move(fd), address,
                                            user_timeout(service_.settings().core)),
                    std::move(unit));
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

void ServiceHost::admit(Admission whom) {
  if (whom == admission_) return;
  admission_ = whom;
  for (const auto& listener : listeners_) {
    const bool is_in = whom == Admission::everybody ||
                       (whom == Admission::local_only && listener->address().is_local_only());
    is_in ? listener->resume() : listener->pause();
  }
}

void ServiceHost::stop_listening() {
  for (const auto& listener : listeners_) listener->close();
  listeners_.clear();
}

}  // namespace muster::server
