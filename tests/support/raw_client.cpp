#include "support/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "wire/error_body.h"

namespace muster::test {
namespace {

constexpr std::size_t receive_bytes_max = 1U << 20;

struct Target {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Target target_of(const std::string& address) {
  Target target;
  if (address.starts_with("unix:")) {
    sockaddr_un path{};
    path.sun_family = AF_UNIX;
    address.substr(5).copy(path.sun_path, sizeof(path.sun_path) - 1);
    std::memcpy(&target.storage, &path, target.size = sizeof(path));
    return target;
  }
  const auto colon = address.rfind(':');
  const auto port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  std::string host = address.substr(0, colon);
  if (host.starts_with("[")) {
    sockaddr_in6 ipv6{};
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = port;
    host = host.substr(1, host.size() - 2);
    ::inet_pton(AF_INET6, host.c_str(), &ipv6.sin6_addr);
    std::memcpy(&target.storage, &ipv6, target.size = sizeof(ipv6));
  } else {
    sockaddr_in ipv4{};
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = port;
    ::inet_pton(AF_INET, host.c_str(), &ipv4.sin_addr);
    std::memcpy(&target.storage, &ipv4, target.size = sizeof(ipv4));
  }
  return target;
}

bool is_bound(int fd, const std::string& from) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ::inet_pton(AF_INET, from.c_str(), &ipv4.sin_addr);
  const int on = 1;  // the port is chosen when it connects: there are as many for each server
  ::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&ipv4), sizeof(ipv4)) == 0;
}

}  // namespace

RawClient::RawClient(const std::string& address, int receive_buffer_bytes,
                     const std::string& from) {
  const Target target = target_of(address);
  const auto* const raw = reinterpret_cast<const sockaddr*>(&target.storage);
  fd_ = ::socket(raw->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer_bytes > 0) {
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(receive_buffer_bytes));
  }
  if ((!from.empty() && !is_bound(fd_, from)) || ::connect(fd_, raw, target.size) != 0) {
    const std::string why = std::strerror(errno);
    ::close(fd_);
    throw std::runtime_error("cannot connect to " + address + ": " + why);
  }
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

RawClient::~RawClient() {
  if (fd_ >= 0) ::close(fd_);
}

RawClient::RawClient(RawClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      last_id_(other.last_id_),
      parts_of_(other.parts_of_),
      parts_(std::move(other.parts_)),
      received_(std::move(other.received_)) {}

RawClient RawClient::with_session(const std::string& address, int receive_buffer_bytes,
                                  const std::string& from) {
  RawClient client(address, receive_buffer_bytes, from);
  const wire::ServerHello hello = client.say_hello();
  if (hello.status != 0) throw std::runtime_error("not welcome: " + hello.detail);
  return client;
}

bool RawClient::wait(short events, Timeout timeout) const {
  pollfd ready{fd_, events, 0};
  return ::poll(&ready, 1, static_cast<int>(timeout.count())) > 0;
}

void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0) throw std::runtime_error(std::string("sending: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::size_t RawClient::send_some(std::string_view bytes) {
  const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void RawClient::finish_sending() { ::shutdown(fd_, SHUT_WR); }

std::string RawClient::receive(std::size_t count, Timeout timeout) {
  std::string bytes(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    if (!wait(POLLIN, timeout)) throw std::runtime_error("nothing came in time");
    const ssize_t got = ::recv(fd_, bytes.data() + have, count - have, 0);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

std::string RawClient::receive_some(Timeout timeout) {
  if (!wait(POLLIN, timeout)) throw std::runtime_error("nothing came in time");
  std::string bytes(receive_bytes_max, '\0');
  const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

bool RawClient::is_closed(Timeout timeout) {
  while (wait(POLLIN, timeout)) {
    char bytes[4096];
    if (::recv(fd_, bytes, sizeof(bytes), 0) <= 0) return true;
  }
  return false;
}

wire::ServerHello RawClient::say_hello(const wire::ClientHello& hello) {
  std::string bytes;
  wire::append_client_hello(bytes, hello);
  send(bytes);
  return receive_hello();
}

wire::ServerHello RawClient::receive_hello() {
  const auto hello = wire::decode_server_hello(receive(wire::server_hello_bytes));
  if (!hello) throw std::runtime_error("no hello came: " + hello.error().message());
  if (hello->status != 0 || hello->resumed) return *hello;
  std::string echo;
  wire::append_echo(echo, hello->token);
  send(echo);
  return *hello;
}

RawClient::Frame RawClient::receive_frame(Timeout timeout) {
  std::string bytes = receive(wire::frame_header_bytes, timeout);
  if (bytes.size() < wire::frame_header_bytes) throw std::runtime_error("closed before a frame");
  std::uint32_t body_bytes = 0;
  std::memcpy(&body_bytes, bytes.data(), sizeof(body_bytes));
  bytes += receive(body_bytes, timeout);
  const auto frame = wire::cut_frame(bytes, UINT32_MAX);
  if (!frame.has_value() || !*frame) throw std::runtime_error("closed within a frame");
  const wire::FrameHeader& header = (*frame)->header;
  if (header.type == wire::FrameType::part) {
    parts_of_ = header.id;
    parts_ += (*frame)->body;
    return receive_frame(timeout);
  }
  if (header.type != wire::FrameType::reply) return {header, std::string((*frame)->body)};
  received_.push_back(header.id);
  if (header.id != parts_of_) return {header, std::string((*frame)->body)};
  return {header, std::exchange(parts_, {}).append((*frame)->body)};
}

std::string RawClient::request(wire::RequestBody body, Duration timeout) {
  wire::Request request;
  request.id = ++last_id_;
  request.timeout = timeout;
  request.acknowledged = std::exchange(received_, {});
  request.body = std::move(body);
  std::string bytes;
  wire::append_request(bytes, request);
  return bytes;
}

std::string RawClient::receive_goodbye() {
  for (;;) {
    const Frame frame = receive_frame();
    if (frame.header.type != wire::FrameType::goodbye) continue;
    return std::string(*wire::decode_goodbye({frame.header, frame.body}));
  }
}

Error RawClient::receive_last_word() {
  for (;;) {
    const Frame frame = receive_frame();
    if (frame.header.type != wire::FrameType::event) continue;
    const auto event = wire::decode_event(frame.header.code, frame.body);
    if (event && event->kind == wire::EventKind::session_ended) return event->error;
  }
}

RawClient::Frame RawClient::call(wire::RequestBody body, Duration timeout) {
  send(request(std::move(body), timeout));
  for (;;) {
    Frame frame = receive_frame();
    if (frame.header.type == wire::FrameType::reply && frame.header.id == last_id_) return frame;
  }
}

}  // namespace muster::test
