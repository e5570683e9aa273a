#pragma once

#include <memory>

#include <boost/asio/ip/tcp.hpp>

#include "server/http/front/conversation.h"
#include "server/http/front/places.h"
#include "server/http/front/tls_context.h"

namespace muster::server::http {

/// What becomes of a newcomer.
struct Arrived {
  boost::asio::ip::tcp::socket socket;
  Caller caller;
  Places::Place place;            ///< null: it is told that there is none
  std::shared_ptr<void> refusal;  ///< its place then
};

/// Serves one connection until it ends; it holds itself. On the front's thread alone, as all here.
void serve(Arrived arrived, Site& site);
/// The same by TLS.
void serve_by_tls(Arrived arrived, Site& site, std::shared_ptr<TlsContext> context);

/// Now.
Conversation::Moment moment();

}  // namespace muster::server::http
