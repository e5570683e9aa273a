#include "support/tls_relay.h"

#include <sys/socket.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "auth/derivation.h"
#include "auth/key.h"
#include "auth/key_ids.h"

namespace muster::test {
namespace {

constexpr Duration linger = std::chrono::seconds(1);
constexpr Duration wait_for_client = std::chrono::seconds(2);

template <class T>
T have(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return *std::move(result);
}

}  // namespace

/// A client, and the server behind it.
struct TlsRelay::Pair {
  std::shared_ptr<net::tls::TlsStream> client;
  int client_fd = -1;
  std::shared_ptr<net::Connector> connector;
  std::shared_ptr<net::Connection> server;
  std::string waiting;                      ///< for the server
  std::unique_ptr<net::Timer> waiting_for;  ///< with a client whose server has ended
  bool is_established = false;
  bool is_over = false;
};

TlsRelay::TlsRelay(Options options) : options_(std::move(options)) {
  admit(options_.keys);
  const auto find = [this](std::string_view id, unsigned char* secret) {
    if (refuses_next_.exchange(false)) return false;
    const std::lock_guard lock(mutex_);
    const auto found = secrets_.find(std::string(id));
    if (found == secrets_.end()) return false;
    std::copy_n(found->second.data(), net::tls::secret_bytes, secret);
    return true;
  };
  context_ = have(net::tls::TlsContext::server(find, options_.files));
  auto sockets = have(net::listen_at({"127.0.0.1:0"}, {}));
  address_ = net::to_string(sockets.front().address());
  listener_ = net::Listener::create(loop_, std::move(sockets.front()), {});
  net::Listener::Callbacks callbacks;
  callbacks.accepted = [this](net::UniqueFd fd, const net::SocketAddress& peer) {
    accepted(std::move(fd), peer);
  };
  callbacks.refused = [](const std::string&) {};
  callbacks.make_room = [] { return false; };
  listener_->start(std::move(callbacks));
  thread_ = std::thread([this] { loop_.run(); });
}

TlsRelay::~TlsRelay() {
  loop_.stop();
  thread_.join();
  for (const auto& pair : pairs_) {
    pair->client->close();
    if (pair->connector) pair->connector->cancel();
    if (pair->server) pair->server->close();
    pair->waiting_for.reset();
  }
  listener_->close();
}

void TlsRelay::admit(const std::vector<std::string>& keys) {
  Secrets secrets;
  for (const std::string& text : keys) {
    const auth::Key key = have(auth::Key::read(text));
    const auto id = have(net::tls::derive(key.bytes(), auth::info_of_id(options_.server_name)));
    secrets.emplace(
        std::string(reinterpret_cast<const char*>(id.data()), sizeof(auth::KeyId::bytes)),
        have(net::tls::derive(key.bytes(), auth::info_of_secret(options_.server_name))));
  }
  const std::lock_guard lock(mutex_);
  secrets_ = std::move(secrets);
}

void TlsRelay::accepted(net::UniqueFd fd, const net::SocketAddress& peer) {
  ++came_count_;
  const auto pair = std::make_shared<Pair>();
  pairs_.push_back(pair);
  pair->client_fd = fd.get();
  pair->client = std::make_shared<net::tls::TlsStream>(
      loop_, net::Connection::create(loop_, std::move(fd), peer, std::chrono::seconds(15)),
      net::tls::TlsSession::create(context_));
  pair->connector = net::Connector::create(loop_, have(net::parse_address(options_.server)), {});
  pair->connector->connect([this, pair](net::Connector::Outcome outcome) {
    if (std::holds_alternative<net::ConnectError>(outcome)) return end(pair, "no server");
    pair->server = std::get<std::shared_ptr<net::Connection>>(outcome);
    pair->server->start({[pair](std::string_view bytes) {
                           pair->client->send(bytes);
                           pair->client->flush();
                         },
                         [this, pair](net::CloseCause, const std::string&) { server_ended(pair); },
                         {}});
    pair->server->send(std::exchange(pair->waiting, {}));
    pair->server->flush();
  });
  pair->client->start({[this, pair](std::string_view bytes) { heard(pair, bytes); },
                       [this, pair](net::CloseCause, const std::string& why) { end(pair, why); },
                       {}});
}

void TlsRelay::heard(const std::shared_ptr<Pair>& pair, std::string_view bytes) {
  if (!std::exchange(pair->is_established, true)) ++established_count_;
  if (!pair->server) {
    pair->waiting += bytes;
    return;
  }
  pair->server->send(bytes);
  pair->server->flush();
}

/// When the client has said goodbye its end is under way.
void TlsRelay::server_ended(const std::shared_ptr<Pair>& pair) {
  if (pair->is_over) return;
  pair->waiting_for = std::make_unique<net::Timer>(loop_);
  pair->waiting_for->set_after(wait_for_client,
                               [this, pair] { end(pair, "the server has ended"); });
}

void TlsRelay::end(const std::shared_ptr<Pair>& pair, std::string_view) {
  if (std::exchange(pair->is_over, true)) return;
  if (pair->waiting_for) pair->waiting_for->cancel();
  if (pair->client->tls().phase() == net::tls::Phase::ended) ++ended_in_order_count_;
  pair->connector->cancel();
  pair->client->close_after_flush(linger);
  if (pair->server) pair->server->close_after_flush(linger);
}

void TlsRelay::truncate() {
  loop_.post([this] {
    for (const auto& pair : pairs_) {
      if (!pair->is_over) ::shutdown(pair->client_fd, SHUT_WR);
    }
  });
}

}  // namespace muster::test
