#pragma once

#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "net/tls/table.h"
#include "tls/library.h"

namespace muster::tls {

using net::tls::Phase;
using net::tls::Sink;
using net::tls::Trouble;

/// What OpenSSL reads from and writes to, during one call.
struct Wire {
  std::string_view came;
  Sink sink{};
};

/// An id as it comes in a client's first bytes.
struct Id {
  std::array<unsigned char, net::tls::id_bytes_max> bytes{};
  std::size_t size = 0;
};

}  // namespace muster::tls

namespace muster::net::tls {

struct Context {
  std::shared_ptr<Context> self;  ///< until whoever has made it lets it go
  muster::tls::Owned<SSL_CTX> ssl;
  ServerContext server{};                 ///< whose files are not looked at any more
  muster::tls::Id own_id{};               ///< of a client with a secret
  const unsigned char* secret = nullptr;  ///< a client's own
  bool is_server = false;
  std::string server_name;
};

struct Session {
  muster::tls::Owned<SSL> ssl;
  std::shared_ptr<const Context> context;
  muster::tls::Wire wire;
  Phase phase = Phase::handshaking;
  bool is_id_known = false;
  muster::tls::Id offered;
  std::array<char, 320> failure{};
  Trouble trouble = Trouble::other;
  bool has_heard = false;  ///< plain bytes
};

}  // namespace muster::net::tls

namespace muster::tls {

/// A session with a secret in the form that OpenSSL takes. null: there is no memory.
Owned<SSL_SESSION> session_of(SSL* ssl, const unsigned char* secret);
net::tls::Session* session_of(const SSL* ssl);
/// OpenSSL's callback for each step of checking a certificate: the session notes the first one that
/// is refused, and why, since OpenSSL's own error has no name.
int note_refused(int is_good, X509_STORE_CTX* checked);

}  // namespace muster::tls
