#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "muster/result.h"
#include "server/http/front/places.h"
#include "server/http/front/site.h"
#include "server/http/front/tls_context.h"

namespace muster::server::http {

enum class Reach { loopback_alone, everywhere };

/// The sockets at which newcomers come.
class Listener {
 public:
  Listener(boost::asio::io_context& context, Site& site, Places& places);

  /// Opens all addresses that "HOST:PORT" means.
  ///
  /// errors  invalid_argument, address_in_use, permission_denied, unavailable
  Result<void> open(const std::string& address, Reach reach);
  void set_tls(std::shared_ptr<TlsContext> tls) { tls_ = std::move(tls); }
  /// From now on newcomers are taken.
  void begin();

  /// Of the first socket.
  std::string address() const;
  std::uint16_t port() const;

 private:
  using Tcp = boost::asio::ip::tcp;

  struct Door {
    explicit Door(boost::asio::io_context& context) : acceptor(context), pause(context) {}
    Tcp::acceptor acceptor;
    boost::asio::steady_timer pause;
  };

  Result<void> open_one(Tcp::endpoint endpoint, Reach reach);
  void accept_at(Door& door);
  void receive(Tcp::socket socket);

  boost::asio::io_context& context_;
  Site& site_;
  Places& places_;
  std::shared_ptr<TlsContext> tls_;
  std::vector<std::unique_ptr<Door>> doors_;
};

}  // namespace muster::server::http
