#include <openssl/crypto.h>

#include <cstdlib>

#include "failures/failing_calls.h"

// The memory that OpenSSL asks for: each piece of it may be refused, too.

namespace muster::test {
namespace {

void* allocate(std::size_t size, const char*, int) {
  return fails_in_openssl() ? nullptr : std::malloc(size);
}

void* allocate_again(void* block, std::size_t size, const char*, int) {
  return fails_in_openssl() ? nullptr : std::realloc(block, size);
}

void release(void* block, const char*, int) { std::free(block); }

/// Before OpenSSL has asked for any.
[[maybe_unused]] const int is_set = CRYPTO_set_mem_functions(allocate, allocate_again, release);

}  // namespace
}  // namespace muster::test

/// OpenSSL itself loses some of what it has made when it is refused the next piece.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcrypto.so\nleak:libssl.so\n";
}
