#include "server/http/library.h"

#include <dlfcn.h>

#include <string>

#include "base/failure.h"

namespace muster::server::http {
namespace {

constexpr const char* soname = "libmuster-http.so.0";
constexpr const char* entry = "muster_http_table";

using Entry = const Table* (*)();

Result<const Table*> find_table() {
  // It stays: its thread may be at work when the process ends.
  void* const library = ::dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return base::failure(ErrorCode::unsupported,
                         std::string("HTTP needs ") + soname + ", which cannot be loaded: " +
                             (why == nullptr ? "unknown reason" : why) +
                             "; install it where Muster's libraries are, with OpenSSL 3, or start "
                             "without --http");
  }
  const auto found = reinterpret_cast<Entry>(::dlsym(library, entry));
  const Table* const table = found == nullptr ? nullptr : found();
  if (table == nullptr)
    return base::failure(ErrorCode::unsupported, "OpenSSL in libmuster-http cannot be set up");
  if (table->version != table_version)
    return base::failure(ErrorCode::unsupported, "libmuster-http is of another version of Muster");
  return table;
}

}  // namespace

Result<const Table*> table() {
  static const auto& found = *new Result<const Table*>(find_table());
  return found;
}

Result<Digest> digest_of(std::string_view bytes) {
  const auto loaded = table();
  if (!loaded) return loaded.error();
  Digest digest;
  if ((*loaded)->digest({bytes.data(), bytes.size()}, digest.data()) == 0)
    return base::failure(ErrorCode::unsupported, "OpenSSL makes no digest");
  return digest;
}

}  // namespace muster::server::http
