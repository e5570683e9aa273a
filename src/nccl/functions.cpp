#include "nccl/functions.h"

#include <dlfcn.h>

#include <initializer_list>
#include <type_traits>

#include "client/failure.h"

namespace muster::nccl {
namespace {

constexpr const char* nccl_soname = "libnccl.so.2";
constexpr const char* cuda_soname = "libcuda.so.1";

Error missing(const std::string& what) { return client::failure(ErrorCode::library_missing, what); }

/// A library and which of its functions were looked for in vain.
class Symbols {
 public:
  static Result<Symbols> open(const char* name, const std::string& path, const char* soname) {
    constexpr int mode = RTLD_NOW | RTLD_LOCAL;
    Symbols symbols;
    if (!path.empty()) {
      symbols.library_ = ::dlopen(path.c_str(), mode);
    } else {
      symbols.library_ = ::dlopen(soname, mode | RTLD_NOLOAD);
      if (symbols.library_ == nullptr) symbols.library_ = ::dlopen(soname, mode);
    }
    if (symbols.library_ != nullptr) return symbols;
    const char* const why = ::dlerror();
    return missing(std::string(name) +
                   " cannot be loaded: " + (why == nullptr ? "unknown error" : why) +
                   (path.empty() ? "; neither has this process loaded it" : ""));
  }

  template <class Function>
  void find(Function& function, const char* name) {
    look(function, {name});
    if (function == nullptr) absent_ += std::string(absent_.empty() ? "" : ", ") + name;
  }

  /// The first of the names that is there; null when none is.
  template <class Function>
  void look(Function& function, std::initializer_list<const char*> names) {
    static_assert(std::is_pointer_v<Function>);
    for (const char* const name : names) {
      function = reinterpret_cast<Function>(::dlsym(library_, name));
      if (function != nullptr) return;
    }
  }

  const std::string& absent() const { return absent_; }

 private:
  void* library_ = nullptr;
  std::string absent_;
};

Result<void> see_nothing_absent(const Symbols& symbols, const std::string& path, const char* soname,
                                const char* name) {
  if (symbols.absent().empty()) return {};
  return missing((path.empty() ? soname : path) + " is no " + name + ": it lacks " +
                 symbols.absent());
}

void find_for_ids(Symbols& symbols, NcclFunctions& nccl) {
  symbols.find(nccl.get_unique_id, "ncclGetUniqueId");
  symbols.find(nccl.get_error_string, "ncclGetErrorString");
  symbols.find(nccl.get_last_error, "ncclGetLastError");
}

void find_for_communicators(Symbols& symbols, NcclFunctions& nccl) {
  symbols.find(nccl.get_version, "ncclGetVersion");
  symbols.find(nccl.comm_init_rank_config, "ncclCommInitRankConfig");
  symbols.find(nccl.comm_get_async_error, "ncclCommGetAsyncError");
  symbols.find(nccl.comm_abort, "ncclCommAbort");
  symbols.find(nccl.comm_finalize, "ncclCommFinalize");
  symbols.find(nccl.comm_destroy, "ncclCommDestroy");
  symbols.find(nccl.group_start, "ncclGroupStart");
  symbols.find(nccl.group_end, "ncclGroupEnd");
  symbols.find(nccl.all_reduce, "ncclAllReduce");
  symbols.find(nccl.broadcast, "ncclBroadcast");
  symbols.find(nccl.reduce, "ncclReduce");
  symbols.find(nccl.all_gather, "ncclAllGather");
  symbols.find(nccl.reduce_scatter, "ncclReduceScatter");
  symbols.find(nccl.send, "ncclSend");
  symbols.find(nccl.recv, "ncclRecv");
  symbols.look(nccl.all_to_all, {"ncclAlltoAll"});
  symbols.look(nccl.gather, {"ncclGather"});
  symbols.look(nccl.scatter, {"ncclScatter"});
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Result<NcclFunctions> load_nccl_for_ids(const std::string& path) {
  auto symbols = Symbols::open("libnccl", path, nccl_soname);
  if (!symbols) return std::move(symbols).error();
  NcclFunctions nccl;
  find_for_ids(*symbols, nccl);
  if (auto seen = see_nothing_absent(*symbols, path, nccl_soname, "NCCL"); !seen) {
    return std::move(seen).error();
  }
  return nccl;
}

Result<NcclFunctions> load_nccl(const std::string& path) {
  auto symbols = Symbols::open("libnccl", path, nccl_soname);
  if (!symbols) return std::move(symbols).error();
  NcclFunctions nccl;
  symbols->look(nccl.get_version, {"ncclGetVersion"});
  int version = 0;
  if (nccl.get_version != nullptr && nccl.get_version(&version) == 0 && version < version_min) {
    return missing("libnccl " + version_text(version) + " is too old, " +
                   version_text(version_min) + " is the first that does; it is " +
                   (path.empty() ? nccl_soname : path));
  }
  find_for_ids(*symbols, nccl);
  find_for_communicators(*symbols, nccl);
  if (auto seen = see_nothing_absent(*symbols, path, nccl_soname, "NCCL"); !seen) {
    return std::move(seen).error();
  }
  return nccl;
}

Result<CudaFunctions> load_cuda(const std::string& path) {
  auto symbols = Symbols::open("libcuda", path, cuda_soname);
  if (!symbols) return std::move(symbols).error();
  CudaFunctions cuda;
  symbols->find(cuda.init, "cuInit");
  symbols->find(cuda.driver_get_version, "cuDriverGetVersion");
  symbols->find(cuda.get_error_string, "cuGetErrorString");
  symbols->find(cuda.device_get_count, "cuDeviceGetCount");
  symbols->find(cuda.device_get, "cuDeviceGet");
  symbols->look(cuda.device_get_uuid, {"cuDeviceGetUuid_v2"});
  if (cuda.device_get_uuid == nullptr) symbols->find(cuda.device_get_uuid, "cuDeviceGetUuid");
  symbols->find(cuda.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  symbols->find(cuda.device_primary_ctx_release, "cuDevicePrimaryCtxRelease_v2");
  symbols->find(cuda.ctx_push_current, "cuCtxPushCurrent_v2");
  symbols->find(cuda.ctx_pop_current, "cuCtxPopCurrent_v2");
  symbols->find(cuda.stream_synchronize, "cuStreamSynchronize");
  symbols->find(cuda.stream_create, "cuStreamCreate");
  symbols->find(cuda.stream_destroy, "cuStreamDestroy_v2");
  symbols->find(cuda.stream_query, "cuStreamQuery");
  symbols->find(cuda.mem_alloc, "cuMemAlloc_v2");
  symbols->find(cuda.mem_free, "cuMemFree_v2");
  if (auto seen = see_nothing_absent(*symbols, path, cuda_soname, "CUDA driver"); !seen) {
    return std::move(seen).error();
  }
  return cuda;
}

Error nccl_error(const NcclFunctions& nccl, int result, const char* function, NcclHandle handle) {
  const char* const what = nccl.get_error_string(result);
  const char* const last = nccl.get_last_error(handle);
  std::string detail = std::string(function) + ": " + (what == nullptr ? "" : what);
  if (last != nullptr && *last != '\0') detail += ": " + std::string(last);
  Error error = client::failure(ErrorCode::nccl, std::move(detail));
  error.actual = static_cast<std::uint64_t>(result);
  return error;
}

}  // namespace muster::nccl
