#include "tls/session.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "tls/certificate.h"
#include "tls/table.h"

namespace muster::tls {

using net::tls::Context;
using net::tls::record_bytes_max;
using net::tls::Session;

namespace {

/// Where a session finds what came and where its bytes go, as long as a call lasts.
class Call {
 public:
  Call(Session& session, std::string_view came, Sink sink) : wire_(session.wire) {
    if (ERR_peek_error() != 0) ERR_clear_error();  // a host may have left some; it is slow
    wire_ = {came, sink};
  }
  ~Call() { wire_ = {}; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Wire& wire_;
};

/// OpenSSL tells an alert of the other side as a reason of its own numbers. Above them are reasons
/// that are none of TLS, such as that there is no memory.
Trouble trouble_of_alert(int reason) {
  constexpr int alert_max = 255;
  const int alert = reason - SSL_AD_REASON_OFFSET;
  if (alert == SSL_AD_INTERNAL_ERROR) return Trouble::unable;
  const bool is_refusal =
      alert > SSL_AD_CLOSE_NOTIFY && alert <= alert_max && alert != SSL_AD_USER_CANCELLED;
  return is_refusal ? Trouble::refused : Trouble::other;
}

/// Of the error that OpenSSL has noted last, while hands are shaken.
Trouble trouble_of_error(const Session& session) {
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return Trouble::other;
  switch (const int reason = ERR_GET_REASON(error)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_BAD_RECORD_TYPE: return Trouble::not_tls;
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return Trouble::untrusted;
    default: return session.context->is_server ? Trouble::other : trouble_of_alert(reason);
  }
}

void fail(Session& session, const char* during) {
  // A server looks at a client's certificate when that is open already.
  if (!session.has_heard) session.trouble = trouble_of_error(session);
  const unsigned long error = ERR_peek_last_error();
  const bool is_told =  // by `note_refused`, or here
      session.failure[0] != '\0' ||
      (ERR_GET_LIB(error) == ERR_LIB_SSL &&
       tell_refused_by_peer(session.ssl.get(), ERR_GET_REASON(error), during,
                            session.failure.data(), session.failure.size()));
  if (is_told) {
    ERR_clear_error();
  } else {
    take_error(session.failure.data(), session.failure.size(), during);
  }
  session.phase = Phase::failed;
}

/// Whom a client has reached: the server has shown that it has the secret, or its certificate.
bool is_expected(const Session& session) {
  return session.context->secret == nullptr || SSL_session_reused(session.ssl.get()) == 1;
}

void shake_hands(Session& session) {
  const int done = SSL_do_handshake(session.ssl.get());
  if (done == 1) {
    if (is_expected(session)) {
      session.phase = Phase::open;
    } else {
      std::snprintf(session.failure.data(), session.failure.size(),
                    "the server does not have the secret of this credential");
      session.trouble = Trouble::untrusted;
      session.phase = Phase::failed;
    }
    return;
  }
  if (SSL_get_error(session.ssl.get(), done) != SSL_ERROR_WANT_READ) fail(session, "TLS handshake");
}

/// returns  how many bytes
std::size_t read_plain(Session& session, char* plain, std::size_t plain_size) {
  std::size_t count = 0;
  const int done = SSL_read_ex(session.ssl.get(), plain, plain_size, &count);
  if (done == 1) {
    session.has_heard = true;
    return count;
  }
  switch (SSL_get_error(session.ssl.get(), done)) {
    case SSL_ERROR_WANT_READ: break;
    case SSL_ERROR_ZERO_RETURN: session.phase = Phase::ended; break;
    default: fail(session, "TLS"); break;
  }
  return 0;
}

bool make_bio(Session& session) {
  BIO* const bio = BIO_new(memory_method());
  if (bio == nullptr) return false;
  BIO_set_data(bio, &session.wire);
  SSL_set_bio(session.ssl.get(), bio, bio);
  return true;
}

}  // namespace

Session* session_of(const SSL* ssl) { return static_cast<Session*>(SSL_get_app_data(ssl)); }

int note_refused(int is_good, X509_STORE_CTX* checked) {
  if (is_good == 1) return 1;
  const int at = SSL_get_ex_data_X509_STORE_CTX_idx();
  Session& session = *session_of(static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(checked, at)));
  tell_refused(checked, session.context->is_server, session.failure.data(), session.failure.size());
  return 0;
}

Session* make_session(Context* context) {
  std::unique_ptr<Session> made(new (std::nothrow) Session);
  if (made == nullptr) return nullptr;
  made->context = context->self;
  made->ssl.reset(SSL_new(context->ssl.get()));
  if (made->ssl == nullptr || !make_bio(*made)) return nullptr;
  SSL* const ssl = made->ssl.get();
  if (SSL_set_app_data(ssl, made.get()) != 1) return nullptr;
  if (context->is_server) {
    SSL_set_accept_state(ssl);
    return made.release();
  }
  SSL_set_connect_state(ssl);
  if (!context->server_name.empty()) {
    const char* const name = context->server_name.c_str();
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    // An address stands in a certificate in another form than a name.
    const bool is_address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    if (!is_address && (SSL_set1_host(ssl, name) != 1 ||
                        SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                 const_cast<char*>(name)) != 1))
      return nullptr;
  }
  return made.release();
}

void free_session(Session* session) { delete session; }

net::tls::Read read(Session* session, const char* came, std::size_t came_size, char* plain,
                    std::size_t plain_size, Sink sink) {
  net::tls::Read done{};
  const Call call(*session, {came, came_size}, sink);
  if (session->phase == Phase::handshaking) shake_hands(*session);
  if (session->phase == Phase::open) done.plain = read_plain(*session, plain, plain_size);
  done.taken = came_size - session->wire.came.size();
  done.phase = session->phase;
  return done;
}

int write(Session* session, const char* plain, std::size_t size, Sink sink) {
  if (session->phase != Phase::open || size > record_bytes_max) return 0;
  const Call call(*session, {}, sink);
  std::size_t written = 0;
  if (SSL_write_ex(session->ssl.get(), plain, size, &written) == 1 && written == size) return 1;
  fail(*session, "TLS");
  return 0;
}

void end(Session* session, Sink sink) {
  if (session->phase != Phase::open && session->phase != Phase::ended) return;
  const Call call(*session, {}, sink);
  SSL_shutdown(session->ssl.get());
}

std::size_t peer_id(const Session* session, unsigned char* id, std::size_t size) {
  if (session->phase == Phase::handshaking || session->phase == Phase::failed) return 0;
  if (!session->is_id_known || SSL_session_reused(session->ssl.get()) != 1) return 0;
  const std::size_t count = std::min(size, session->offered.size);
  if (count > 0) std::memcpy(id, session->offered.bytes.data(), count);
  return session->offered.size;
}

std::size_t peer_names(const Session* session, char* names, std::size_t size) {
  if (session->phase == Phase::handshaking || session->phase == Phase::failed) return 0;
  const X509* const certificate = SSL_get0_peer_certificate(session->ssl.get());
  if (certificate == nullptr || SSL_get_verify_result(session->ssl.get()) != X509_V_OK) return 0;
  const std::string all = names_of(certificate);
  all.copy(names, size);
  return all.size();
}

}  // namespace muster::tls
