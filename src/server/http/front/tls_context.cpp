#include "server/http/front/tls_context.h"

#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>

namespace muster::server::http {
namespace {

boost::asio::const_buffer buffer_of(const std::string& text) {
  return boost::asio::buffer(text.data(), text.size());
}

}  // namespace

bool set_up_openssl() {
  return OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) == 1;
}

std::shared_ptr<TlsContext> make_tls_context(const Certificates& certificates,
                                             TlsRefusal& refusal) {
  auto context = std::make_shared<TlsContext>(TlsContext::tls_server);
  SSL_CTX* const handle = context->native_handle();
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(handle, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(handle, SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_set_min_proto_version(handle, TLS1_3_VERSION) != 1) {
    refusal.why = "HTTP cannot use TLS: OpenSSL has no TLS 1.3";
    return nullptr;
  }
  // A key with a password is refused: OpenSSL would ask at the terminal.
  SSL_CTX_set_default_passwd_cb(handle, [](char*, int, int, void*) { return 0; });
  boost::system::error_code error;
  const auto fails = [&](CertificatePart part, const char* what) {
    if (error) refusal = {part, std::string(what) + ": " + error.message()};
    return static_cast<bool>(error);
  };
  context->use_certificate_chain(buffer_of(certificates.certificate), error);
  if (fails(CertificatePart::certificate, "it has no usable certificate in PEM")) return nullptr;
  context->use_private_key(buffer_of(certificates.key), TlsContext::pem, error);
  if (fails(CertificatePart::key, "it has no usable key in PEM without a password")) return nullptr;
  if (SSL_CTX_check_private_key(handle) != 1) {
    refusal = {CertificatePart::key, "the key is not that of the certificate"};
    return nullptr;
  }
  if (certificates.authorities.empty()) return context;
  constexpr const char* authorities = "it has no usable certificate in PEM";
  context->add_certificate_authority(buffer_of(certificates.authorities), error);
  if (fails(CertificatePart::authorities, authorities)) return nullptr;
  context->set_verify_mode(
      boost::asio::ssl::verify_peer | boost::asio::ssl::verify_fail_if_no_peer_cert, error);
  if (fails(CertificatePart::authorities, authorities)) return nullptr;
  return context;
}

}  // namespace muster::server::http
