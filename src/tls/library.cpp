#include "tls/library.h"

#include <openssl/crypto.h>
#include <openssl/err.h>

#include <cstdio>
#include <cstring>

#include "tls/session.h"

namespace muster::tls {

namespace {

/// Made at the first call, and never let go: sessions may outlive whoever has loaded this library.
OSSL_LIB_CTX* make_library_context() {
  // Whoever is first sets OpenSSL up: it is not to read openssl.cnf, nor to end with the process,
  // while other threads still use it.
  if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) != 1)
    return nullptr;
  return OSSL_LIB_CTX_new();
}

BIO_METHOD* make_memory_method() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "memory");
  if (method == nullptr) return nullptr;
  BIO_meth_set_write_ex(method,
                        [](BIO* bio, const char* bytes, std::size_t size, std::size_t* written) {
                          const auto* const wire = static_cast<Wire*>(BIO_get_data(bio));
                          if (wire->sink.append == nullptr) return 0;
                          wire->sink.append(wire->sink.to, bytes, size);
                          *written = size;
                          return 1;
                        });
  BIO_meth_set_read_ex(method, [](BIO* bio, char* into, std::size_t size, std::size_t* count) {
    auto* const wire = static_cast<Wire*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    *count = wire->came.copy(into, size);
    wire->came.remove_prefix(*count);
    if (*count != 0) return 1;
    BIO_set_retry_read(bio);
    return 0;
  });
  BIO_meth_set_ctrl(method, [](BIO*, int command, long, void*) -> long {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  });
  BIO_meth_set_create(method, [](BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  });
  return method;
}

}  // namespace

OSSL_LIB_CTX* library_context() {
  static OSSL_LIB_CTX* const context = make_library_context();
  return context;
}

BIO_METHOD* memory_method() {
  static BIO_METHOD* const method = make_memory_method();
  return method;
}

void take_error(char* why, std::size_t why_size, const char* during) {
  if (why_size == 0) return;
  // Of a file that cannot be read the system's reason comes first, and "system lib" last.
  const unsigned long first = ERR_peek_error();
  const char* text = ERR_SYSTEM_ERROR(first) ? std::strerror(ERR_GET_REASON(first))
                                             : ERR_reason_error_string(ERR_peek_last_error());
  std::snprintf(why, why_size, "%s%s%s", during, *during == '\0' ? "" : ": ",
                text == nullptr ? "unknown reason" : text);
  ERR_clear_error();
}

}  // namespace muster::tls
