#include "nccl/doubles/cuda_access.h"

#include <dlfcn.h>

#include <mutex>
#include <type_traits>

namespace nccl_double {
namespace {

struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*get_current)(void** context) = nullptr;
  int (*push_current)(void* context) = nullptr;
  int (*pop_current)(void** context) = nullptr;
  int (*get_device)(int* device) = nullptr;
  int (*get_uuid)(unsigned char* uuid, int device) = nullptr;
  int (*get_error_string)(int result, const char** text) = nullptr;
  int (*launch_host_function)(void* stream, void (*function)(void*), void* argument) = nullptr;
  int (*get_pointer_attribute)(void* data, int attribute, unsigned long long) = nullptr;
  int (*is_capturing)(void* stream, int* status) = nullptr;
  std::string error;
};

Driver load_driver() {
  Driver driver;
  void* handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) handle = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) {
    driver.error = "CUDA driver version is insufficient for CUDA runtime version";
    return driver;
  }
  // The memory of a real device is none that the double could read.
  if (::dlsym(handle, "cuda_double_alive") == nullptr) {
    driver.error = "the double of NCCL needs the double of the CUDA driver";
    return driver;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(handle, name));
  };
  find(driver.init, "cuInit");
  find(driver.get_current, "cuCtxGetCurrent");
  find(driver.push_current, "cuCtxPushCurrent_v2");
  find(driver.pop_current, "cuCtxPopCurrent_v2");
  find(driver.get_device, "cuCtxGetDevice");
  find(driver.get_uuid, "cuDeviceGetUuid_v2");
  find(driver.get_error_string, "cuGetErrorString");
  find(driver.launch_host_function, "cuLaunchHostFunc");
  find(driver.get_pointer_attribute, "cuPointerGetAttribute");
  find(driver.is_capturing, "cuStreamIsCapturing");
  return driver;
}

/// Looked for until there is one: a test may load it later.
Driver driver() {
  static std::mutex mutex;
  static auto* const one = new Driver;
  const std::lock_guard lock(mutex);
  if (one->init == nullptr) *one = load_driver();
  return *one;
}

}  // namespace

OwnDevice own_device() {
  OwnDevice own;
  const Driver cuda = driver();
  own.error = cuda.error;
  if (!own.error.empty()) return own;
  const auto succeeded = [&](int result) {
    const char* text = nullptr;
    if (result == 0) return true;
    cuda.get_error_string(result, &text);
    own.error = text == nullptr ? "error " + std::to_string(result) : text;
    return false;
  };
  if (!succeeded(cuda.init(0)) || !succeeded(cuda.get_current(&own.context))) return own;
  if (own.context != nullptr && !succeeded(cuda.get_device(&own.device))) return own;
  succeeded(cuda.get_uuid(own.uuid.data(), own.device));
  return own;
}

bool is_device_memory(const void* memory) {
  constexpr int device_ordinal = 9;
  int device = 0;
  const auto address = reinterpret_cast<unsigned long long>(memory);
  return driver().get_pointer_attribute(&device, device_ordinal, address) == 0;
}

bool is_captured(void* stream) {
  int status = 0;
  return driver().is_capturing(stream, &status) == 0 && status != 0;
}

int launch_host_function(const OwnDevice& own, void* stream, void (*function)(void*),
                         void* argument) {
  const Driver cuda = driver();
  if (own.context == nullptr) return cuda.launch_host_function(stream, function, argument);
  if (const int result = cuda.push_current(own.context)) return result;
  const int result = cuda.launch_host_function(stream, function, argument);
  void* popped = nullptr;
  cuda.pop_current(&popped);
  return result;
}

}  // namespace nccl_double
