#include "server/service_host.h"

#include <algorithm>
#include <utility>

#include "base/monotonic_now.h"
#include "core/session/failure.h"
#include "net/address/unit.h"
#include "net/connection.h"

namespace muster::server {
ServiceHost::ServiceHost(net::Loop& loop, Settings settings)
    : loop_(loop), timer_(loop), service_(*this, std::move(settings)) {}

ServiceHost::~ServiceHost() {
  if (failure_number_ == 0) return;
  loop_.forget(failure_number_);
  loop_.busy_polling().end(service_.settings().core.rim.busy_poll);
}

void ServiceHost::start(std::vector<net::Listening> listenings,
                        std::vector<TcpStoreListening> of_tcpstore) {
  if (service_.is_closed()) return;  // before it came to that
  failure_number_ = loop_.on_failure([weak = weak_from_this()](auto why) {
    if (const auto self = weak.lock()) self->service_.fail(why);
  });
  const Duration busy_poll = service_.settings().core.rim.busy_poll;
  if (busy_poll > Duration::zero()) loop_.busy_polling().begin(busy_poll);
  tell_what_is_open(listenings);
  for (net::Listening& listening : listenings) {
    const Arrival arrival{arrival_at(listening)};
    listen(std::move(listening), arrival);
  }
  for (TcpStoreListening& open : of_tcpstore) {
    tell_of_tcpstore(open);
    const Arrival arrival{Arrival::Kind::tcpstore, static_cast<std::uint16_t>(open.port)};
    listen(std::move(open.listening), arrival);
  }
  service_.tick();
}

/// By what those who come there are known.
Arrival::Kind ServiceHost::arrival_at(const net::Listening& listening) const {
  const bool asks = service_.settings().door && listening.identities() == net::Identities::asked;
  if (!asks) return Arrival::Kind::open;
  return listening.address().is_unix() ? Arrival::Kind::user : Arrival::Kind::tls;
}

/// One line that an operator can trust.
void ServiceHost::tell_what_is_open(const std::vector<net::Listening>& listenings) {
  std::string open;
  std::string by_tls;
  std::string by_user;
  for (const net::Listening& listening : listenings) {
    const Arrival::Kind kind = arrival_at(listening);
    std::string& to = kind == Arrival::Kind::tls    ? by_tls
                      : kind == Arrival::Kind::user ? by_user
                                                    : open;
    to += (to.empty() ? "" : ", ") + to_string(listening.address());
  }
  const std::shared_ptr<Door>& door = service_.settings().door;
  std::string line = door ? std::to_string(door->identities_count()) + " identities are known"
                          : std::string("no credentials: nobody is asked who he is");
  if (!by_tls.empty()) line += "; by TLS at " + by_tls;
  if (!by_user.empty()) line += "; by the user of the system at " + by_user;
  if (!open.empty()) line += "; whoever reaches it has all rights at " + open;
  service_.log().line(LogLevel::info, "exposed: " + line);
}

void ServiceHost::tell_of_tcpstore(const TcpStoreListening& open) {
  const tcpstore::Port& port = service_.settings().tcpstore[open.port];
  service_.log().line(LogLevel::info,
                      "exposed: TCPStore at " + to_string(open.listening.address()) +
                          ": nobody is asked who he is, and whoever reaches it may read and write "
                          "all keys of namespace " +
                          core::quoted_text(port.name_space));
}

void ServiceHost::listen(net::Listening listening, const Arrival& how) {
  ServerLog& log = service_.log();
  log.line(LogLevel::info, "listening on " + to_string(listening.address()));
  const Duration user_timeout = user_timeout_of(service_.settings().core);
  const bool gives_options = listening.options() == net::Listening::Options::inherited;
  const auto accepted = [this, user_timeout, gives_options, how](
                            net::UniqueFd fd, const net::SocketAddress& address) {
    const net::UnitId unit = net::unit_of(fd.get(), address);
    Arrival arrival = how;
    if (how.kind == Arrival::Kind::user) arrival.user = net::user_of(fd.get());
    service_.accepted(gives_options
                          ? net::Connection::accepted(loop_, std::move(fd), address)
                          : net::Connection::create(loop_, std::move(fd), address, user_timeout),
                      unit, arrival);
  };
  const auto refused = [&log](const std::string& detail) {
    if (!log.admits("the system", LogLevel::warning, base::monotonic_now())) return;
    log.line(LogLevel::warning, "out of resources: " + detail);
  };
  listeners_.push_back(
      net::Listener::create(loop_, std::move(listening), service_.farewell(how.kind)));
  listeners_.back()->start({accepted, refused, [this] { return service_.make_room(); }});
}

base::Instant ServiceHost::now() const { return base::monotonic_now(); }

Duration ServiceHost::worked() const { return base::worked(); }

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
