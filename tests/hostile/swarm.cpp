#include "hostile/swarm.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "client/link/credential.h"

namespace muster::hostile {
namespace {

constexpr std::size_t receive_bytes = 256 * 1024;
constexpr std::chrono::seconds patience{60};
// All clients in turn, each once in four seconds.
constexpr std::chrono::milliseconds heartbeats_every{100};
constexpr std::size_t heartbeat_turns = 40;
/// Who wants no more than this also has short segments: the server's system keeps little for it.
constexpr int smallest_buffer_bytes = 4096;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

in_addr address_of(const std::string& text) {
  in_addr address{};
  if (::inet_pton(AF_INET, text.c_str(), &address) != 1) {
    throw std::runtime_error(text + " is no IPv4 address");
  }
  return address;
}

}  // namespace

Sources::Sources(const std::string& first, std::uint32_t count)
    : first_(ntohl(address_of(first).s_addr)), count_(count) {}

in_addr Sources::next() { return {htonl(first_ + taken_++ % count_)}; }

Swarm::Swarm(const std::string& server) : buffer_(receive_bytes, '\0') {
  const auto colon = server.rfind(':');
  server_.sin_family = AF_INET;
  server_.sin_addr = address_of(server.substr(0, colon));
  server_.sin_port = htons(static_cast<std::uint16_t>(std::stoi(server.substr(colon + 1))));
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) fail("epoll_create1");
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, STDIN_FILENO, &event) != 0) fail("the standard input");
}

Swarm::~Swarm() {
  for (const auto& client : clients_) {
    if (client->fd >= 0) ::close(client->fd);
  }
  ::close(epoll_);
}

void Swarm::use_tls() {
  const auto io_thread = IoThread::create_for_caller();
  const client::Handlers handlers({}, *io_thread);
  const auto credential = client::Credential::of({}, {}, handlers);
  if (!credential || *credential == nullptr) throw std::runtime_error("there is no credential");
  tls_ = (*credential)->next();
}

Client& Swarm::open(in_addr from, int receive_buffer_bytes) {
  if (free_.empty()) {
    clients_.push_back(std::make_unique<Client>());
    free_.push_back(clients_.back().get());
  }
  Client& client = *free_.back();
  free_.pop_back();
  client = {};
  if (tls_) client.tls = net::tls::TlsSession::create(tls_);
  client.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (client.fd < 0) fail("socket");
  client.state = Client::State::connecting;
  const int on = 1;
  ::setsockopt(client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(client.fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  if (receive_buffer_bytes > 0) {
    ::setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                 sizeof(receive_buffer_bytes));
  }
  if (receive_buffer_bytes > 0 && receive_buffer_bytes <= smallest_buffer_bytes) {
    const int segment_bytes = 536;
    ::setsockopt(client.fd, IPPROTO_TCP, TCP_MAXSEG, &segment_bytes, sizeof(segment_bytes));
  }
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr = from;
  if (::bind(client.fd, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) fail("bind");
  epoll_event event{};
  event.events = EPOLLOUT;
  event.data.ptr = &client;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, client.fd, &event) != 0) fail("epoll_ctl");
  const auto* const server = reinterpret_cast<const sockaddr*>(&server_);
  if (::connect(client.fd, server, sizeof(server_)) != 0 && errno != EINPROGRESS) end(client);
  return client;
}

/// By a reset, which leaves no port behind.
void Swarm::close(Client& client) {
  if (client.fd >= 0) {
    const linger at_once{1, 0};
    ::setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    ::close(client.fd);
    client.fd = -1;
  }
  client.state = Client::State::closed;
  free_.push_back(&client);
}

void Swarm::close(const Clients& clients) {
  for (Client* const client : clients) close(*client);
}

/// It stays its owner's until that closes it.
void Swarm::end(Client& client) {
  ++ended_count_;
  ::close(client.fd);
  client.fd = -1;
  client.state = Client::State::closed;
}

void Swarm::send(Client& client, std::string_view bytes) {
  if (!client.is_open()) return;
  if (client.tls && !client.is_encrypted) {
    client.clear += bytes;
    return;
  }
  const bool had_some = client.unsent() > 0;
  while (client.tls && !bytes.empty()) {
    client.tls->write(bytes.substr(0, net::tls::record_bytes_max), client.out);
    bytes.remove_prefix(std::min(bytes.size(), net::tls::record_bytes_max));
  }
  client.out += bytes;
  if (!had_some && client.state != Client::State::connecting) flush(client);
}

void Swarm::say_hello(Client& client, const wire::ClientHello& hello) {
  std::string bytes;
  wire::append_client_hello(bytes, hello);
  client.has_said_hello = true;
  if (client.state == Client::State::connected) client.state = Client::State::waits_for_hello;
  send(client, bytes);
}

void Swarm::request(Client& client, wire::RequestBody body, Duration timeout) {
  wire::Request request;
  request.id = ++client.last_id;
  request.timeout = timeout;
  request.acknowledged = std::exchange(client.received, {});
  request.body = std::move(body);
  std::string bytes;
  wire::append_request(bytes, request);
  ++client.in_flight;
  send(client, bytes);
}

void Swarm::say_goodbye(Client& client) {
  std::string bytes;
  wire::append_goodbye(bytes, "bye");
  send(client, bytes);
}

void Swarm::stop_reading(Client& client) {
  client.reads = false;
  if (client.is_open()) watch(client);
}

void Swarm::watch(Client& client) {
  epoll_event event{};
  if (client.reads) event.events |= EPOLLIN;
  if (client.unsent() > 0) event.events |= EPOLLOUT;
  event.data.ptr = &client;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, client.fd, &event);
}

void Swarm::flush(Client& client) {
  const bool waited = client.unsent() > 0;
  while (client.unsent() > 0) {
    const ssize_t count = ::send(client.fd, client.out.data() + client.sent, client.unsent(),
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EAGAIN) break;
      return end(client);
    }
    client.sent += static_cast<std::size_t>(count);
  }
  if (client.unsent() == 0) {
    client.out.clear();
    client.sent = 0;
  }
  if (waited) watch(client);
}

void Swarm::turn(std::chrono::milliseconds wait_max) {
  std::array<epoll_event, 512> ready;
  const int count = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()),
                                 static_cast<int>(wait_max.count()));
  for (int index = 0; index < count; ++index) {
    const epoll_event& event = ready[static_cast<std::size_t>(index)];
    if (event.data.ptr == nullptr) {
      read_orders();
    } else {
      handle(*static_cast<Client*>(event.data.ptr), event.events);
    }
  }
  send_heartbeats();
}

bool Swarm::turn_until(const std::function<bool()>& is_done, std::chrono::seconds limit) {
  const auto until = Time::now() + limit;
  while (!is_done()) {
    if (Time::now() > until) return false;
    turn();
  }
  return true;
}

void Swarm::handle(Client& client, std::uint32_t events) {
  if (client.state == Client::State::connecting) return connected(client);
  if (client.is_open() && (events & EPOLLOUT) != 0) flush(client);
  if (client.is_open() && client.reads && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) {
    receive(client);
  } else if (client.is_open() && (events & (EPOLLERR | EPOLLHUP)) != 0) {
    end(client);
  }
}

void Swarm::connected(Client& client) {
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(client.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return end(client);
  tcp_info info{};
  size = sizeof(info);
  ::getsockopt(client.fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  client.retransmitted = info.tcpi_total_retrans;
  client.state = client.has_said_hello ? Client::State::waits_for_hello : Client::State::connected;
  if (client.tls) decrypt(client, {});
  watch(client);
  flush(client);
}

void Swarm::receive(Client& client) {
  const ssize_t count = ::recv(client.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) return end(client);
  received_bytes_ += static_cast<std::size_t>(count);
  const std::string_view came(buffer_.data(), static_cast<std::size_t>(count));
  if (!client.tls) {
    client.in += came;
  } else if (!decrypt(client, came)) {
    return end(client);
  }
  take(client);
}

/// returns  false: it has ended
bool Swarm::decrypt(Client& client, std::string_view came) {
  std::array<char, net::tls::record_bytes_max> plain;
  for (;;) {
    const net::tls::Read read = client.tls->read(came, plain.data(), plain.size(), client.out);
    came.remove_prefix(read.taken);
    client.in.append(plain.data(), read.plain);
    if (read.phase == net::tls::Phase::failed || read.phase == net::tls::Phase::ended) return false;
    if (read.phase == net::tls::Phase::open && !std::exchange(client.is_encrypted, true)) {
      send(client, std::exchange(client.clear, {}));
    }
    if (read.plain == 0 && (read.taken == 0 || came.empty())) break;
  }
  flush(client);
  return client.is_open();
}

/// What has come as a whole.
void Swarm::take(Client& client) {
  if (client.state == Client::State::waits_for_hello && !take_hello(client)) return;
  std::size_t taken = 0;
  while (client.is_welcome()) {
    const auto frame = wire::cut_frame(std::string_view(client.in).substr(taken), UINT32_MAX);
    if (!frame.has_value()) return end(client);
    if (!*frame) break;
    handle(client, **frame);
    taken += wire::frame_header_bytes + (*frame)->body.size();
  }
  client.in.erase(0, taken);
}

bool Swarm::take_hello(Client& client) {
  if (client.in.size() < wire::server_hello_bytes) return false;
  const auto hello = wire::decode_server_hello(client.in.substr(0, wire::server_hello_bytes));
  client.in.erase(0, wire::server_hello_bytes);
  if (!hello) {
    end(client);
    return false;
  }
  if (hello->status != 0) {
    client.refused = static_cast<ErrorCode>(hello->status);
    end(client);
    return false;
  }
  client.state = Client::State::welcome;
  client.session_id = hello->session_id;
  client.token = hello->token;
  if (!hello->resumed) {
    std::string echo;
    wire::append_echo(echo, hello->token);
    send(client, echo);
  }
  return client.is_open();
}

void Swarm::handle(Client& client, const wire::Frame& frame) {
  if (frame.header.type == wire::FrameType::event) {
    ++events_[static_cast<wire::EventKind>(frame.header.code)];
  }
  if (frame.header.type != wire::FrameType::reply) return;
  --client.in_flight;
  client.received.push_back(frame.header.id);
  ++replies_[static_cast<ErrorCode>(frame.header.code)];
  if (client.on_reply) client.on_reply(client, frame);
}

void Swarm::read_orders() {
  char bytes[256];
  const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof(bytes));
  if (count <= 0) std::_Exit(0);
  told_count_ += static_cast<std::size_t>(std::count(bytes, bytes + count, '\n'));
}

void Swarm::send_heartbeats() {
  const auto now = Time::now();
  if (now - heartbeats_at_ < heartbeats_every) return;
  heartbeats_at_ = now;
  for (std::size_t index = heartbeats_from_; index < clients_.size(); index += heartbeat_turns) {
    Client& client = *clients_[index];
    if (!client.is_welcome() || client.unsent() > 0) continue;
    std::string bytes;
    wire::append_ids(bytes, wire::FrameType::heartbeat, 1, std::exchange(client.received, {}));
    send(client, bytes);
  }
  heartbeats_from_ = (heartbeats_from_ + 1) % heartbeat_turns;
}

Swarm::Clients Swarm::enter(std::size_t count, Sources& sources, const wire::ClientHello& hello) {
  Clients entered;
  for (; count > 0; --count) {
    entered.push_back(&open(sources.next()));
    say_hello(*entered.back(), hello);
  }
  const bool are_in = turn_until(
      [&] {
        return std::all_of(entered.begin(), entered.end(), [](const Client* client) {
          return !client->is_open() || client->is_welcome();
        });
      },
      patience);
  if (!are_in) throw std::runtime_error("some were neither welcomed nor refused");
  return entered;
}

void Swarm::wait_until_closed(const Clients& clients) {
  const bool are_closed = turn_until(
      [&] {
        return std::none_of(clients.begin(), clients.end(),
                            [](const Client* client) { return client->is_open(); });
      },
      patience);
  if (!are_closed) throw std::runtime_error("some connections were not closed");
}

void Swarm::ask(Client& client, std::size_t count, std::size_t at_once,
                const std::function<wire::RequestBody(std::size_t index)>& body, Duration timeout) {
  std::size_t asked = 0;
  const bool are_answered = turn_until(
      [&] {
        while (client.is_welcome() && client.in_flight < at_once && asked < count) {
          request(client, body(asked++), timeout);
        }
        return !client.is_welcome() || (asked == count && client.in_flight == 0);
      },
      patience);
  if (!are_answered) throw std::runtime_error("some requests were not answered");
}

std::uint64_t Swarm::replies(ErrorCode code) const {
  const auto found = replies_.find(code);
  return found == replies_.end() ? 0 : found->second;
}

std::uint64_t Swarm::events(wire::EventKind kind) const {
  const auto found = events_.find(kind);
  return found == events_.end() ? 0 : found->second;
}

}  // namespace muster::hostile
