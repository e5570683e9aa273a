#include "nccl/device.h"

#include <string>

#include "client/failure.h"

namespace muster::nccl_internal {

Error cuda_error(const nccl::CudaFunctions& cuda, int result, const char* function) {
  const char* text = nullptr;
  cuda.get_error_string(result, &text);
  return client::failure(ErrorCode::no_device, std::string(function) + ": " +
                                                   (text == nullptr ? "unknown error" : text) +
                                                   " (CUresult " + std::to_string(result) + ")");
}

Result<std::shared_ptr<const Device>> Device::open(const nccl::CudaFunctions& cuda, int ordinal) {
  const std::shared_ptr<Device> device(new Device(cuda, ordinal));
  if (const int result = cuda.init(0); result != 0) return cuda_error(cuda, result, "cuInit");
  int count = 0;
  if (const int result = cuda.device_get_count(&count); result != 0) {
    return cuda_error(cuda, result, "cuDeviceGetCount");
  }
  if (ordinal < 0 || ordinal >= count) {
    return client::failure(ErrorCode::no_device, "there is no device " + std::to_string(ordinal) +
                                                     ", this process sees " +
                                                     std::to_string(count));
  }
  if (const int result = cuda.device_get(&device->device_, ordinal); result != 0) {
    return cuda_error(cuda, result, "cuDeviceGet");
  }
  if (const int result = cuda.device_get_uuid(device->uuid_.data(), device->device_); result != 0) {
    return cuda_error(cuda, result, "cuDeviceGetUuid");
  }
  if (const int result = cuda.device_primary_ctx_retain(&device->context_, device->device_);
      result != 0) {
    device->context_ = nullptr;
    return cuda_error(cuda, result, "cuDevicePrimaryCtxRetain");
  }
  return std::shared_ptr<const Device>(device);
}

Device::~Device() {
  if (context_ != nullptr) cuda_.device_primary_ctx_release(device_);
}

Device::Current::Current(const Device& device)
    : device_(device), is_pushed_(device.cuda_.ctx_push_current(device.context_) == 0) {}

Device::Current::~Current() {
  void* popped = nullptr;
  if (is_pushed_) device_.cuda_.ctx_pop_current(&popped);
}

}  // namespace muster::nccl_internal
