#pragma once

#include <string>

#include "muster/nccl.h"

namespace muster::nccl {

/// The functions of a libnccl that was loaded while the program runs. Never unloaded: NCCL has
/// threads.
class Library {
 public:
  /// path    of the library; empty: the loaded libnccl.so.2, else that of the dynamic linker
  /// errors  library_missing (detail: what was looked for, and why it does not do)
  static Result<Library> load(const std::string& path);

  /// Makes an id, and with it a thread and a listening socket of this process.
  ///
  /// errors  nccl (actual, 0 when it was not NCCL that refused; detail)
  Result<NcclUniqueId> new_unique_id() const;

 private:
  // As nccl.h declares them, but for the pointer's type; ncclResult_t is an int.
  using GetUniqueId = int (*)(void* id);
  using GetErrorString = const char* (*)(int);
  using GetLastError = const char* (*)(void* communicator);

  GetUniqueId get_unique_id_ = nullptr;
  GetErrorString get_error_string_ = nullptr;
  GetLastError get_last_error_ = nullptr;
};

}  // namespace muster::nccl
