#include "client/link/net_world.h"

#include <utility>

#include "base/monotonic_now.h"
#include "base/random.h"
#include "net/io_thread.h"
#include "net/tls/stream.h"

namespace muster::client {

NetWorld::NetWorld(std::shared_ptr<IoThread> io_thread, net::Address server,
                   std::unique_ptr<Credential> credential)
    : io_thread_(std::move(io_thread)),
      loop_(io_thread_->impl().loop()),
      server_(std::move(server)),
      credential_(std::move(credential)),
      timer_(loop_) {}

Instant NetWorld::now() const { return base::monotonic_now(); }

/// Only spreads attempts, so the time will do where there is nothing else.
std::uint64_t NetWorld::random() {
  const auto now = static_cast<std::uint64_t>(base::monotonic_now().time_since_epoch().count());
  return base::random_u64().value_or(now);
}

void NetWorld::post(net::Task& task) noexcept { loop_.post(task); }

void NetWorld::ring() noexcept { loop_.bell().ring(); }

bool NetWorld::on_io_thread() const { return io_thread_->impl().on_io_thread(); }

bool NetWorld::would_deadlock() const { return io_thread_->impl().would_deadlock(); }

bool NetWorld::run_here(const std::function<void()>& work) {
  return io_thread_->impl().run_here(work);
}

std::size_t NetWorld::send_now(int descriptor, std::string_view bytes) noexcept {
  return net::Connection::send_now(descriptor, bytes);
}

void NetWorld::close_inherited() { io_thread_->impl().close_inherited_sockets(); }

std::uint64_t NetWorld::on_ring(std::function<void()> listener) {
  return loop_.bell().add(std::move(listener));
}

void NetWorld::forget_ring(std::uint64_t number) { loop_.bell().remove(number); }

std::uint64_t NetWorld::on_failure(std::function<void(std::string_view why)> listener) {
  return loop_.on_failure(std::move(listener));
}

void NetWorld::forget_failure(std::uint64_t number) { loop_.forget(number); }

void NetWorld::begin_busy_poll(Duration wish) { loop_.busy_polling().begin(wish); }

void NetWorld::end_busy_poll(Duration wish) noexcept { loop_.busy_polling().end(wish); }

void NetWorld::wake_at(Instant when, std::function<void()> work) {
  timer_.set(when, std::move(work));
}

void NetWorld::cancel_wake() noexcept { timer_.cancel(); }

void NetWorld::connect(std::function<void(Connected outcome)> handler) {
  if (!connector_) connector_ = net::Connector::create(loop_, server_, {});
  connector_->connect([this, handler = std::move(handler)](net::Connector::Outcome outcome) {
    if (auto* const error = std::get_if<net::ConnectError>(&outcome))
      return handler(std::move(*error));
    auto connection = std::get<std::shared_ptr<net::Connection>>(std::move(outcome));
    if (!credential_) return handler(std::move(connection));
    handler(secure(std::move(connection)));
  });
}

World::Connected NetWorld::secure(std::shared_ptr<net::Connection> connection) {
  auto context = credential_->next();
  auto session = context ? net::tls::TlsSession::create(std::move(context)) : nullptr;
  if (session == nullptr) {
    connection->close();
    return net::ConnectError{net::ConnectFailure::silent, "OpenSSL has no memory for a connection"};
  }
  return std::make_shared<net::tls::TlsStream>(loop_, std::move(connection), std::move(session));
}

void NetWorld::cancel_connect() {
  if (connector_) connector_->cancel();
}

std::string NetWorld::awaited() const { return connector_ ? connector_->awaited() : ""; }

void NetWorld::mark_good() {
  if (connector_) connector_->mark_good();
  if (credential_) credential_->mark_good();
}

Instant NetWorld::next_look_for_key() const {
  return credential_ ? credential_->next_look() : base::far_future;
}

bool NetWorld::has_newer_key() { return credential_ && credential_->has_newer(now()); }

bool NetWorld::try_another_key() { return credential_ && credential_->try_another(); }

}  // namespace muster::client
