#include "nccl/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <type_traits>

#include "client/failure.h"

namespace muster::nccl {
namespace {

constexpr const char* soname = "libnccl.so.2";

std::string last_dl_error() {
  const char* const text = ::dlerror();
  return text == nullptr ? "unknown error" : text;
}

Error missing(const std::string& what) { return client::failure(ErrorCode::library_missing, what); }

/// With it NCCL makes the same id again and again, and nobody listens for its ranks.
std::optional<Error> refusal_of_environment() {
  if (std::getenv("NCCL_COMM_ID") == nullptr) return std::nullopt;
  return client::failure(ErrorCode::nccl,
                         "NCCL_COMM_ID is set, in the environment or in NCCL's configuration "
                         "file: every id would be the same; unset it");
}

/// Local: the symbols of this libnccl are nobody else's.
void* open_library(const std::string& path) {
  constexpr int mode = RTLD_NOW | RTLD_LOCAL;
  if (!path.empty()) return ::dlopen(path.c_str(), mode);
  void* const loaded = ::dlopen(soname, mode | RTLD_NOLOAD);
  return loaded != nullptr ? loaded : ::dlopen(soname, mode);
}

}  // namespace

Result<Library> Library::load(const std::string& path) {
  void* const handle = open_library(path);
  if (handle == nullptr) {
    return missing("libnccl cannot be loaded: " + last_dl_error() +
                   (path.empty() ? "; neither has this process loaded it" : ""));
  }
  Library library;
  std::string absent;
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = ::dlsym(handle, name);
    if (symbol == nullptr) absent += std::string(absent.empty() ? "" : ", ") + name;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  find(library.get_unique_id_, "ncclGetUniqueId");
  find(library.get_error_string_, "ncclGetErrorString");
  find(library.get_last_error_, "ncclGetLastError");
  if (!absent.empty()) {
    return missing((path.empty() ? soname : path) + " is no NCCL: it lacks " + absent);
  }
  return library;
}

Result<NcclUniqueId> Library::new_unique_id() const {
  if (auto refused = refusal_of_environment()) return *std::move(refused);
  NcclUniqueId id{};
  const int result = get_unique_id_(id.data());
  if (result == 0) {
    // Once more: NCCL has read its configuration files into the environment.
    if (auto refused = refusal_of_environment()) {
      nccl_give_up(id);
      return *std::move(refused);
    }
    return id;
  }
  const char* const what = get_error_string_(result);
  const char* const last = get_last_error_(nullptr);
  std::string detail = "ncclGetUniqueId: " + std::string(what == nullptr ? "" : what);
  if (last != nullptr && *last != '\0') detail += ": " + std::string(last);
  Error error = client::failure(ErrorCode::nccl, std::move(detail));
  error.actual = static_cast<std::uint64_t>(result);
  return error;
}

}  // namespace muster::nccl
