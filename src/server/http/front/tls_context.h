#pragma once

#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "server/http/front.h"

namespace muster::server::http {

using TlsContext = boost::asio::ssl::context;

/// What is wrong with certificates.
struct TlsRefusal {
  CertificatePart part = CertificatePart::none;
  std::string why;
};

/// TLS 1.3 with these certificates.
///
/// returns  null: `refusal` says what is wrong with them
std::shared_ptr<TlsContext> make_tls_context(const Certificates& certificates, TlsRefusal& refusal);

/// Sets OpenSSL up, without the system's openssl.cnf and without an end of its own. Once, before
/// all else.
bool set_up_openssl();

}  // namespace muster::server::http
