#include <cstdlib>

// A library that a host has loaded for everybody, with names of OpenSSL, of no version, as a TLS
// library that was linked into it has. Whoever means OpenSSL and gets this ends.

#define ANOTHER(name) \
  extern "C" __attribute__((visibility("default"))) void name() { std::abort(); }

ANOTHER(OPENSSL_init_crypto)
ANOTHER(OSSL_LIB_CTX_new)
ANOTHER(EVP_KDF_fetch)
ANOTHER(EVP_KDF_derive)
ANOTHER(RAND_bytes_ex)
ANOTHER(SSL_CTX_new_ex)
ANOTHER(SSL_CTX_set_options)
ANOTHER(SSL_new)
ANOTHER(SSL_do_handshake)
ANOTHER(SSL_read_ex)
ANOTHER(SSL_write_ex)
ANOTHER(ERR_clear_error)
