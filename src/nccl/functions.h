#pragma once

#include <string>

#include "muster/nccl_functions.h"
#include "muster/result.h"

namespace muster::nccl_internal {

// The libraries that the process has, or that are loaded while it runs; never unloaded, since they
// have threads. Local: their symbols are nobody else's.

constexpr int version_min = 21800;
/// The first that has the types of one byte with a floating point.
constexpr int version_of_float8 = 22400;

// Values of ncclResult_t.
constexpr int success = 0;
constexpr int invalid_argument = 4;
constexpr int invalid_usage = 5;
constexpr int remote_error = 6;
constexpr int in_progress = 7;

/// path    of the library; empty: the loaded libnccl.so.2, else that of the dynamic linker
/// errors  library_missing (detail: what was looked for, which functions it lacks, or its version)
Result<nccl::Functions> load_nccl(const std::string& path);

/// path    of the library; empty: libcuda.so.1
/// errors  library_missing
Result<nccl::CudaFunctions> load_cuda(const std::string& path);

/// Tables of a host's own.
///
/// errors  library_missing (detail: which functions they lack, or the version)
Result<nccl::Functions> given_nccl(nccl::Functions nccl);
Result<nccl::CudaFunctions> given_cuda(nccl::CudaFunctions cuda);

/// Those that make an id, of any version; the others stay null.
///
/// errors  library_missing
Result<nccl::Functions> load_nccl_for_ids(const std::string& path);

/// As "2.28.9".
std::string version_text(int version);

/// An error with NCCL's texts for `result` and for its last error.
Error nccl_error(const nccl::Functions& nccl, int result, const char* function,
                 nccl::Handle handle = nullptr);

}  // namespace muster::nccl_internal
