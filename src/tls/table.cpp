#include "tls/table.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "tls/certificate.h"
#include "tls/library.h"
#include "tls/session.h"

namespace muster::tls {

int derive(const unsigned char* key, std::size_t key_size, const char* info, std::size_t info_size,
           unsigned char* secret) {
  EVP_KDF* const kdf = EVP_KDF_fetch(library_context(), "HKDF", nullptr);
  EVP_KDF_CTX* const context = EVP_KDF_CTX_new(kdf);
  EVP_KDF_free(kdf);
  if (context == nullptr) return 0;
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<unsigned char*>(key),
                                        key_size),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<char*>(info), info_size),
      OSSL_PARAM_construct_end()};
  const int done = EVP_KDF_derive(context, secret, net::tls::secret_bytes, parameters);
  EVP_KDF_CTX_free(context);
  return done == 1 ? 1 : 0;
}

namespace {

const char* failure_of(const net::tls::Session* session) { return session->failure.data(); }

net::tls::Trouble trouble_of(const net::tls::Session* session) { return session->trouble; }

constexpr net::tls::Table table = {net::tls::table_version,
                                   make_server,
                                   make_client,
                                   free_context,
                                   make_session,
                                   free_session,
                                   read,
                                   write,
                                   end,
                                   peer_id,
                                   peer_names,
                                   failure_of,
                                   derive,
                                   trouble_of,
                                   certificates};

}  // namespace
}  // namespace muster::tls

extern "C" __attribute__((visibility("default"))) const muster::net::tls::Table*
muster_tls_table() {
  const bool is_set_up =
      muster::tls::library_context() != nullptr && muster::tls::memory_method() != nullptr;
  return is_set_up ? &muster::tls::table : nullptr;
}
