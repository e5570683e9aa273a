#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace nccl_double {

/// A reduction that a host has made: a sum of what is multiplied first.
struct RedOp {
  int type = 0;
  std::array<char, 8> factor{};   ///< an element, unless there is an address
  const void* address = nullptr;  ///< where the device reads the factor
};

/// Those of one communicator (2.28.9: src/enqueue.cc, ncclRedOpCreatePreMulSum and
/// ncclRedOpDestroy): as many as there is memory for; the place of one that was destroyed last is
/// taken first. The handles of two communicators differ (include/comm.h: ncclUserRedOpMangle).
class RedOps {
 public:
  RedOps();
  /// Gives its handle, which is no built-in operation.
  int add(const RedOp& op);
  /// False: it has none with this handle.
  bool remove(int handle);
  std::optional<RedOp> find(int handle) const;

 private:
  const int first_;
  mutable std::mutex mutex_;
  std::vector<std::optional<RedOp>> places_;
  std::vector<std::size_t> free_;
};

}  // namespace nccl_double
