#include "nccl/functions.h"

#include <dlfcn.h>

#include <initializer_list>
#include <type_traits>

#include "client/failure.h"

namespace muster::nccl_internal {
namespace {

constexpr const char* nccl_soname = "libnccl.so.2";
constexpr const char* cuda_soname = "libcuda.so.1";

Error missing(const std::string& what) { return client::failure(ErrorCode::library_missing, what); }

/// What to do in the process that lacks it.
std::string advice_for(std::string_view soname) {
  return soname == cuda_soname
             ? "; install NVIDIA's driver there, or give the path of its libcuda.so.1"
             : "; install NCCL there, name its folder in LD_LIBRARY_PATH, or give its path";
}

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
    return missing(
        std::string(name) + " cannot be loaded: " + (why == nullptr ? "unknown error" : why) +
        (path.empty() ? "; neither has this process loaded it" : "") + advice_for(soname));
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

template <class Visit>
void visit_for_ids(nccl::Functions& nccl, const Visit& visit) {
  visit(nccl.get_unique_id, "ncclGetUniqueId");
  visit(nccl.get_error_string, "ncclGetErrorString");
  visit(nccl.get_last_error, "ncclGetLastError");
}

template <class Visit>
void visit_for_communicators(nccl::Functions& nccl, const Visit& visit) {
  visit_for_ids(nccl, visit);
  visit(nccl.get_version, "ncclGetVersion");
  visit(nccl.comm_init_rank_config, "ncclCommInitRankConfig");
  visit(nccl.comm_get_async_error, "ncclCommGetAsyncError");
  visit(nccl.comm_abort, "ncclCommAbort");
  visit(nccl.comm_finalize, "ncclCommFinalize");
  visit(nccl.comm_destroy, "ncclCommDestroy");
  visit(nccl.group_start, "ncclGroupStart");
  visit(nccl.group_end, "ncclGroupEnd");
  visit(nccl.all_reduce, "ncclAllReduce");
  visit(nccl.broadcast, "ncclBroadcast");
  visit(nccl.reduce, "ncclReduce");
  visit(nccl.all_gather, "ncclAllGather");
  visit(nccl.reduce_scatter, "ncclReduceScatter");
  visit(nccl.send, "ncclSend");
  visit(nccl.recv, "ncclRecv");
}

template <class Visit>
void visit(nccl::CudaFunctions& cuda, const Visit& visit) {
  visit(cuda.init, "cuInit");
  visit(cuda.get_error_string, "cuGetErrorString");
  visit(cuda.device_get_count, "cuDeviceGetCount");
  visit(cuda.device_get, "cuDeviceGet");
  visit(cuda.device_get_uuid, "cuDeviceGetUuid");
  visit(cuda.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  visit(cuda.device_primary_ctx_release, "cuDevicePrimaryCtxRelease_v2");
  visit(cuda.ctx_push_current, "cuCtxPushCurrent_v2");
  visit(cuda.ctx_pop_current, "cuCtxPopCurrent_v2");
  visit(cuda.stream_create, "cuStreamCreate");
  visit(cuda.stream_destroy, "cuStreamDestroy_v2");
  visit(cuda.stream_query, "cuStreamQuery");
  visit(cuda.mem_alloc, "cuMemAlloc_v2");
  visit(cuda.mem_free, "cuMemFree_v2");
}

/// Where a function comes from.
std::string file_of(int (*function)(int* version)) {
  Dl_info info{};
  const bool is_known =
      ::dladdr(reinterpret_cast<const void*>(function), &info) != 0 && info.dli_fname != nullptr;
  return is_known ? info.dli_fname : "an unknown file";
}

Result<void> see_new_enough(const nccl::Functions& nccl) {
  int version = 0;
  if (nccl.get_version(&version) != 0 || version >= version_min) return {};
  return missing("libnccl " + version_text(version) + " is too old, " + version_text(version_min) +
                 " is the first that does; install a newer one in the place of " +
                 file_of(nccl.get_version));
}

/// Collects the names of what a host's table lacks.
class Absent {
 public:
  template <class Function>
  void operator()(Function& function, const char* name) const {
    if (function == nullptr) names_ += std::string(names_.empty() ? "" : ", ") + name;
  }
  Result<void> see_none(const char* what) const {
    if (names_.empty()) return {};
    return missing(std::string("the host's functions of ") + what + " lack " + names_);
  }

 private:
  mutable std::string names_;
};

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Result<nccl::Functions> load_nccl_for_ids(const std::string& path) {
  auto symbols = Symbols::open("libnccl", path, nccl_soname);
  if (!symbols) return std::move(symbols).error();
  nccl::Functions nccl;
  visit_for_ids(nccl, [&](auto& function, const char* name) { symbols->find(function, name); });
  if (auto seen = see_nothing_absent(*symbols, path, nccl_soname, "NCCL"); !seen) {
    return std::move(seen).error();
  }
  return nccl;
}

Result<nccl::Functions> load_nccl(const std::string& path) {
  auto symbols = Symbols::open("libnccl", path, nccl_soname);
  if (!symbols) return std::move(symbols).error();
  nccl::Functions nccl;
  symbols->look(nccl.get_version, {"ncclGetVersion"});
  if (nccl.get_version != nullptr) {  // an old one is told so, not what it lacks
    if (auto seen = see_new_enough(nccl); !seen) return std::move(seen).error();
  }
  visit_for_communicators(nccl,
                          [&](auto& function, const char* name) { symbols->find(function, name); });
  symbols->look(nccl.all_to_all, {"ncclAlltoAll"});
  symbols->look(nccl.gather, {"ncclGather"});
  symbols->look(nccl.scatter, {"ncclScatter"});
  symbols->look(nccl.red_op_create_pre_mul_sum, {"ncclRedOpCreatePreMulSum"});
  symbols->look(nccl.red_op_destroy, {"ncclRedOpDestroy"});
  if (auto seen = see_nothing_absent(*symbols, path, nccl_soname, "NCCL"); !seen) {
    return std::move(seen).error();
  }
  return nccl;
}

Result<nccl::Functions> given_nccl(nccl::Functions nccl) {
  const Absent absent;
  visit_for_communicators(nccl, absent);
  if (auto seen = absent.see_none("NCCL"); !seen) return std::move(seen).error();
  if (auto seen = see_new_enough(nccl); !seen) return std::move(seen).error();
  return nccl;
}

Result<nccl::CudaFunctions> load_cuda(const std::string& path) {
  auto symbols = Symbols::open("libcuda", path, cuda_soname);
  if (!symbols) return std::move(symbols).error();
  nccl::CudaFunctions cuda;
  visit(cuda, [&](auto& function, const char* name) { symbols->find(function, name); });
  symbols->look(cuda.device_get_uuid, {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"});
  if (auto seen = see_nothing_absent(*symbols, path, cuda_soname, "CUDA driver"); !seen) {
    return std::move(seen).error();
  }
  return cuda;
}

Result<nccl::CudaFunctions> given_cuda(nccl::CudaFunctions cuda) {
  const Absent absent;
  visit(cuda, absent);
  if (auto seen = absent.see_none("the CUDA driver"); !seen) return std::move(seen).error();
  return cuda;
}

Error nccl_error(const nccl::Functions& nccl, int result, const char* function,
                 nccl::Handle handle) {
  const char* const what = nccl.get_error_string(result);
  const char* const last = nccl.get_last_error(handle);
  std::string detail = std::string(function) + ": " + (what == nullptr ? "" : what);
  if (last != nullptr && *last != '\0') detail += ": " + std::string(last);
  Error error = client::failure(ErrorCode::nccl, std::move(detail));
  error.actual = static_cast<std::uint64_t>(result);
  return error;
}

}  // namespace muster::nccl_internal
