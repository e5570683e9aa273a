#pragma once

#include <array>
#include <memory>

#include "muster/nccl_functions.h"
#include "muster/result.h"

namespace muster::nccl_internal {

/// One CUDA device, with its primary context held.
class Device {
 public:
  using Uuid = std::array<unsigned char, 16>;

  /// Looks whether NCCL could use it: with a driver that does not work NCCL's init fails in a way
  /// that leaves its thread inside a group.
  ///
  /// errors  no_device (detail: what the driver said, or how many there are)
  static Result<std::shared_ptr<const Device>> open(const nccl::CudaFunctions& cuda, int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const nccl::CudaFunctions& cuda() const { return cuda_; }
  int ordinal() const { return ordinal_; }
  const Uuid& uuid() const { return uuid_; }

  /// While it lives, the device is the calling thread's current one; then again what was.
  class Current {
   public:
    explicit Current(const Device& device);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Device& device_;
    bool is_pushed_ = false;
  };

 private:
  Device(const nccl::CudaFunctions& cuda, int ordinal) : cuda_(cuda), ordinal_(ordinal) {}

  nccl::CudaFunctions cuda_;
  int ordinal_;
  int device_ = -1;
  void* context_ = nullptr;
  Uuid uuid_{};
};

/// An error with the driver's text for `result`.
Error cuda_error(const nccl::CudaFunctions& cuda, int result, const char* function);

}  // namespace muster::nccl_internal
