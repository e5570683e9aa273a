#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <memory>

// OpenSSL as this library uses it: with a context of its own, so that what the host has set up,
// loaded or ended of OpenSSL does not matter here, nor the other way round.

namespace muster::tls {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
template <class Object>
using Owned = std::unique_ptr<Object, Free>;

/// What the processes' other uses of OpenSSL do not see. null: it cannot be set up.
OSSL_LIB_CTX* library_context();
/// Bytes from and to memory; null: it cannot be set up.
BIO_METHOD* memory_method();

/// The last error of this thread in OpenSSL's words, which are forgotten.
void take_error(char* why, std::size_t why_size, const char* during);

}  // namespace muster::tls
