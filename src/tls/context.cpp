#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include <openssl/x509_vfy.h>

#include "tls/session.h"
#include "tls/table.h"

// What all connections have in common. TLS 1.3 and nothing older; secrets always with X25519, so
// that who learns a secret later cannot read what was said; no tickets, no early data.

namespace muster::tls {

using net::tls::Certificates;
using net::tls::ClientContext;
using net::tls::Context;
using net::tls::ServerContext;
using net::tls::Session;

namespace {

constexpr const char* cipher_suites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr unsigned char first_suite[] = {0x13, 0x01};

bool set_up(SSL_CTX* context) {
  int groups[] = {NID_X25519};
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_ciphersuites(context, cipher_suites) == 1 &&
         SSL_CTX_set1_groups(context, groups, std::size(groups)) == 1 &&
         SSL_CTX_set_num_tickets(context, 0) == 1 && SSL_CTX_set_max_early_data(context, 0) == 1;
}

/// returns  what could not be used; null: all is well
const char* use_files(SSL_CTX* context, const Certificates& files) {
  if (files.certificate_file != nullptr) {
    if (SSL_CTX_use_certificate_chain_file(context, files.certificate_file) != 1)
      return files.certificate_file;
    if (SSL_CTX_use_PrivateKey_file(context, files.key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
      return files.key_file;
  }
  if (files.authorities_file != nullptr &&
      SSL_CTX_load_verify_file(context, files.authorities_file) != 1)
    return files.authorities_file;
  if (files.trusts_system != 0 && SSL_CTX_set_default_verify_paths(context) != 1)
    return "the system's certificates";
  return nullptr;
}

/// As if it were known: a client that has made up an id learns no more than one with a wrong key.
int find_session(SSL* ssl, const unsigned char* id, std::size_t id_size, SSL_SESSION** found) {
  *found = nullptr;
  Session* const session = session_of(ssl);
  const ServerContext& server = session->context->server;
  if (server.find_secret == nullptr) return 1;  // by certificates alone
  std::array<unsigned char, net::tls::secret_bytes> secret;
  if (RAND_bytes_ex(library_context(), secret.data(), secret.size(), 0) != 1) return 0;
  if (id_size <= session->offered.bytes.size()) {
    session->is_id_known = server.find_secret(server.user, id, id_size, secret.data()) != 0;
    std::memcpy(session->offered.bytes.data(), id, id_size);  // takes as long if nobody has it
    session->offered.size = session->is_id_known ? id_size : 0;
  }
  *found = session_of(ssl, secret.data()).release();
  OPENSSL_cleanse(secret.data(), secret.size());
  return *found != nullptr ? 1 : 0;
}

int use_session(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_size,
                SSL_SESSION** used) {
  const Context& context = *session_of(ssl)->context;
  *used = session_of(ssl, context.secret).release();
  *id = context.own_id.bytes.data();
  *id_size = context.own_id.size;
  return *used != nullptr ? 1 : 0;
}

Context* give_up(char* why, std::size_t why_size, const char* during) {
  take_error(why, why_size, during);
  return nullptr;
}

std::shared_ptr<Context> make_context(const SSL_METHOD* method) {
  if (library_context() == nullptr || memory_method() == nullptr) return nullptr;
  auto made = std::make_shared<Context>();
  made->ssl.reset(SSL_CTX_new_ex(library_context(), nullptr, method));
  if (made->ssl == nullptr || !set_up(made->ssl.get())) return nullptr;
  return made;
}

}  // namespace

Owned<SSL_SESSION> session_of(SSL* ssl, const unsigned char* secret) {
  Owned<SSL_SESSION> made(SSL_SESSION_new());
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, first_suite);
  if (made == nullptr || cipher == nullptr ||
      SSL_SESSION_set1_master_key(made.get(), secret, net::tls::secret_bytes) != 1 ||
      SSL_SESSION_set_cipher(made.get(), cipher) != 1 ||
      SSL_SESSION_set_protocol_version(made.get(), TLS1_3_VERSION) != 1)
    return nullptr;
  return made;
}

Context* make_server(const ServerContext* options, char* why, std::size_t why_size) {
  auto made = make_context(TLS_server_method());
  if (made == nullptr) return give_up(why, why_size, "OpenSSL cannot be set up");
  made->server = *options;
  made->is_server = true;
  SSL_CTX* const ssl = made->ssl.get();
  if (const char* wrong = use_files(ssl, options->certificates))
    return give_up(why, why_size, wrong);
  // OpenSSL takes a secret for a session that goes on, whose context has to have a name.
  constexpr unsigned char name[] = {'m', 'u', 's', 't', 'e', 'r'};
  SSL_CTX_set_session_id_context(ssl, name, sizeof name);
  // Of a client without a secret: it shows a certificate, or is refused.
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, note_refused);
  SSL_CTX_set_psk_find_session_callback(ssl, find_session);
  return (made->self = made).get();
}

Context* make_client(const ClientContext* options, char* why, std::size_t why_size) {
  auto made = make_context(TLS_client_method());
  if (made == nullptr) return give_up(why, why_size, "OpenSSL cannot be set up");
  SSL_CTX* const ssl = made->ssl.get();
  if (const char* wrong = use_files(ssl, options->certificates))
    return give_up(why, why_size, wrong);
  // With a secret the server has shown that it has it, too: a certificate is not asked for then,
  // and a server that answers with one, since it has no such secret, is refused here.
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, note_refused);
  if (options->id != nullptr) {
    if (options->id_size > made->own_id.bytes.size()) return nullptr;
    std::memcpy(made->own_id.bytes.data(), options->id, options->id_size);
    made->own_id.size = options->id_size;
    made->secret = options->secret;
    SSL_CTX_set_psk_use_session_callback(ssl, use_session);
  }
  if (options->server_name != nullptr) made->server_name = options->server_name;
  return (made->self = made).get();
}

void free_context(Context* context) {
  if (context != nullptr) std::shared_ptr<Context>(std::move(context->self)).reset();
}

}  // namespace muster::tls
