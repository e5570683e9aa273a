#include "server/http/front/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <chrono>

#include <boost/asio/ip/v6_only.hpp>

#include "base/failure.h"
#include "server/http/front/connection.h"

namespace muster::server::http {
namespace {

namespace ip = boost::asio::ip;

using UserTimeout = boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;

constexpr int backlog = 1024;
constexpr int send_buffer_bytes = 256 * 1024;
constexpr std::chrono::milliseconds pause_without_descriptors(100);

/// "::ffff:192.0.2.1" is who it is by IPv4.
ip::address plain_address(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  return address;
}

std::string text_of(const ip::address& address) {
  boost::system::error_code ignored;
  return address.to_string(ignored);
}

/// Whose connections are counted together.
std::string unit_of(const ip::address& address) {
  if (!address.is_v6()) return text_of(address);
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return text_of(ip::address_v6(bytes));
}

std::string text_of(const ip::tcp::endpoint& endpoint) {
  const std::string address = text_of(endpoint.address());
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

Error failure_at(const std::string& address, const boost::system::error_code& error) {
  ErrorCode code = ErrorCode::unavailable;
  if (error == boost::asio::error::address_in_use) code = ErrorCode::address_in_use;
  if (error == boost::asio::error::access_denied) code = ErrorCode::permission_denied;
  return base::failure(code, "cannot listen at " + address + ": " + error.message());
}

/// "HOST:PORT", "[HOST]:PORT" -> both; an empty port: it is of another form.
std::pair<std::string, std::string> host_and_port(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos) return {};
  std::string host = address.substr(0, colon);
  std::string port = address.substr(colon + 1);
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (!has_brackets && host.find(':') != host.npos) return {};
  if (has_brackets) host = host.substr(1, host.size() - 2);
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  if (port.size() > 5 || !std::all_of(port.begin(), port.end(), is_digit)) return {};
  return {std::move(host), std::move(port)};
}

}  // namespace

Listener::Listener(boost::asio::io_context& context, Site& site, Places& places)
    : context_(context), site_(site), places_(places) {}

Result<void> Listener::open(const std::string& address, Reach reach) {
  const auto [host, port] = host_and_port(address);
  if (port.empty() || std::stoi(port) > 65535)
    return base::failure(ErrorCode::invalid_argument, "\"" + address + "\" is no HOST:PORT");
  boost::system::error_code error;
  Tcp::resolver resolver(context_);
  const auto found =
      resolver.resolve(host, port, Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
  if (error)
    return base::failure(ErrorCode::invalid_argument,
                         "\"" + host + "\" has no address: " + error.message());
  for (const auto& entry : found) {
    Tcp::endpoint endpoint = entry.endpoint();
    if (endpoint.port() == 0 && !doors_.empty()) endpoint.port(this->port());
    Result<void> opened = open_one(endpoint, reach);
    if (!opened) return opened;
  }
  return {};
}

Result<void> Listener::open_one(Tcp::endpoint endpoint, Reach reach) {
  if (reach == Reach::loopback_alone && !plain_address(endpoint.address()).is_loopback())
    return base::failure(
        ErrorCode::permission_denied,
        "other machines could read what HTTP shows at " + text_of(endpoint) +
            ": keep it to loopback, give it TLS and tokens or certificates of clients "
            "(--http-cert, --http-key, and --http-tokens or --http-client-ca), or say "
            "--allow-unauthenticated");
  auto door = std::make_unique<Door>(context_);
  boost::system::error_code error;
  door->acceptor.open(endpoint.protocol(), error);
  if (error == boost::asio::error::address_family_not_supported && !doors_.empty()) return {};
  if (!error) door->acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) door->acceptor.set_option(ip::v6_only(true), error);
  if (!error) door->acceptor.bind(endpoint, error);
  if (!error) door->acceptor.listen(backlog, error);
  if (error) return failure_at(text_of(endpoint), error);
  doors_.push_back(std::move(door));
  return {};
}

std::string Listener::address() const {
  boost::system::error_code ignored;
  return text_of(doors_.front()->acceptor.local_endpoint(ignored));
}

std::uint16_t Listener::port() const {
  boost::system::error_code ignored;
  return doors_.front()->acceptor.local_endpoint(ignored).port();
}

void Listener::begin() {
  for (const auto& door : doors_) accept_at(*door);
}

void Listener::accept_at(Door& door) {
  door.acceptor.async_accept([this, &door](boost::system::error_code error, Tcp::socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    const bool is_short = error && error != boost::asio::error::connection_aborted;
    if (is_short) {  // of descriptors or memory: it is tried again
      door.pause.expires_after(pause_without_descriptors);
      return door.pause.async_wait([this, &door](boost::system::error_code failure) {
        if (!failure) accept_at(door);
      });
    }
    accept_at(door);  // first, so that nothing that is thrown ends it
    if (!error) receive(std::move(socket));
  });
}

void Listener::receive(Tcp::socket socket) {
  boost::system::error_code error;
  const Tcp::endpoint from = socket.remote_endpoint(error);
  const Tcp::endpoint to = error ? Tcp::endpoint() : socket.local_endpoint(error);
  if (!error) socket.set_option(Tcp::no_delay(true), error);
  // What the system keeps for those who do not read has a limit, too.
  if (!error) socket.set_option(Tcp::socket::send_buffer_size(send_buffer_bytes), error);
  // Nor has who is gone without a word a stream for long.
  const auto patience = static_cast<int>(site_.limits().write_ms);
  if (!error) socket.set_option(UserTimeout(patience), error);
  if (error) return;
  const ip::address peer = plain_address(from.address());
  Caller caller{text_of(peer), unit_of(peer), text_of(plain_address(to.address()))};
  Places::Place place = places_.take(caller.unit);
  std::shared_ptr<void> refusal;
  if (place == nullptr) {
    refusal = places_.take_for_refusal();
    if (refusal == nullptr || tls_) return;  // a word by TLS would cost a handshake
    caller.has_place = false;
  }
  Arrived arrived{std::move(socket), std::move(caller), std::move(place), std::move(refusal)};
  if (tls_) return serve_by_tls(std::move(arrived), site_, tls_);
  serve(std::move(arrived), site_);
}

}  // namespace muster::server::http
