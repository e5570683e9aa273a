#include <cstdlib>
#include <cstring>

#include "nccl/doubles/cuda_state.h"
#include "nccl/doubles/exported.h"

// Of the driver's interface: devices, contexts and memory. Handles are pointers, CUdevice is an
// int, CUdeviceptr an unsigned 64-bit number and CUresult an int.

using namespace cuda_double;

namespace {

using DevicePointer = unsigned long long;
constexpr std::size_t alignment = 256;

/// `work` with the device of this number, once the driver may be used.
template <class Work>
int with_device(const char* function, int device, Work work) {
  if (const int result = state().refusal(function)) return result;
  const std::lock_guard lock(state().mutex);
  if (device < 0 || static_cast<std::size_t>(device) >= state().devices.size()) {
    return invalid_device;
  }
  return work(*state().devices[static_cast<std::size_t>(device)]);
}

template <class Work>
int with_context(const char* function, Work work) {
  if (const int result = state().refusal(function)) return result;
  const Current current = current_context();
  return current.context == nullptr ? current.result : work(*current.context);
}

void* host(DevicePointer pointer) { return reinterpret_cast<void*>(pointer); }

bool is_valid(DevicePointer pointer, std::size_t size_bytes) {
  const std::lock_guard lock(state().mutex);
  return state().is_device_memory(pointer, size_bytes);
}

/// Copies as the null stream's next work, and waits for it.
template <class Work>
int at_once(Work work) {
  const Found null_stream = find_stream(nullptr);
  if (null_stream.result != success) return null_stream.result;
  null_stream.entry.stream->wait_for(enqueue(null_stream.entry, work));
  return success;
}

}  // namespace

DOUBLE_EXPORT int cuInit(unsigned flags) {
  const std::lock_guard lock(state().mutex);
  const auto failure = state().failures.find("cuInit");
  if (failure != state().failures.end()) return failure->second;
  if (flags != 0) return invalid_value;
  if (state().init_result != success) return state().init_result;
  if (state().devices.empty()) return no_device;
  state().is_initialized = true;
  return success;
}

DOUBLE_EXPORT int cuDriverGetVersion(int* version) {
  if (version == nullptr) return invalid_value;
  const std::lock_guard lock(state().mutex);
  *version = state().driver_version;  // without cuInit, too
  return success;
}

DOUBLE_EXPORT int cuDeviceGetCount(int* count) {
  if (const int result = state().refusal("cuDeviceGetCount")) return result;
  if (count == nullptr) return invalid_value;
  const std::lock_guard lock(state().mutex);
  *count = static_cast<int>(state().devices.size());
  return success;
}

DOUBLE_EXPORT int cuDeviceGet(int* device, int ordinal) {
  return with_device("cuDeviceGet", ordinal, [&](const Device&) {
    if (device == nullptr) return invalid_value;
    *device = ordinal;
    return success;
  });
}

DOUBLE_EXPORT int cuDeviceGetName(char* name, int size, int device) {
  return with_device("cuDeviceGetName", device, [&](const Device&) {
    if (name == nullptr || size <= 0) return invalid_value;
    std::strncpy(name, "Device of the tests' double", static_cast<std::size_t>(size));
    name[size - 1] = '\0';
    return success;
  });
}

DOUBLE_EXPORT int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  return with_device("cuDeviceGetUuid_v2", device, [&](const Device& found) {
    if (uuid == nullptr) return invalid_value;
    std::memcpy(uuid, found.uuid.data(), found.uuid.size());
    return success;
  });
}

DOUBLE_EXPORT int cuDeviceGetUuid(unsigned char* uuid, int device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

DOUBLE_EXPORT int cuDevicePrimaryCtxRetain(Context** context, int device) {
  return with_device("cuDevicePrimaryCtxRetain", device, [&](Device& found) {
    if (context == nullptr) return invalid_value;
    ++found.context.retained;
    *context = &found.context;
    return success;
  });
}

DOUBLE_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  return with_device("cuDevicePrimaryCtxRelease_v2", device, [&](Device& found) {
    if (found.context.retained == 0) return invalid_context;
    if (--found.context.retained == 0 && found.context.null_stream != nullptr) {
      found.context.null_stream->close();
      found.context.null_stream = nullptr;
    }
    return success;
  });
}

DOUBLE_EXPORT int cuCtxGetCurrent(Context** context) {
  if (const int result = state().refusal("cuCtxGetCurrent")) return result;
  if (context == nullptr) return invalid_value;
  *context = context_stack().empty() ? nullptr : context_stack().back();
  return success;
}

DOUBLE_EXPORT int cuCtxPopCurrent_v2(Context** context) {
  if (const int result = state().refusal("cuCtxPopCurrent_v2")) return result;
  if (context_stack().empty()) return invalid_context;
  if (context != nullptr) *context = context_stack().back();
  context_stack().pop_back();
  return success;
}

DOUBLE_EXPORT int cuCtxPushCurrent_v2(Context* context) {
  if (const int result = state().refusal("cuCtxPushCurrent_v2")) return result;
  const std::lock_guard lock(state().mutex);
  if (!state().knows(context)) return invalid_context;
  context_stack().push_back(context);
  return success;
}

DOUBLE_EXPORT int cuCtxSetCurrent(Context* context) {
  if (const int result = state().refusal("cuCtxSetCurrent")) return result;
  const std::lock_guard lock(state().mutex);
  if (context != nullptr && !state().knows(context)) return invalid_context;
  if (!context_stack().empty()) context_stack().pop_back();
  if (context != nullptr) context_stack().push_back(context);
  return success;
}

DOUBLE_EXPORT int cuCtxGetDevice(int* device) {
  return with_context("cuCtxGetDevice", [&](const Context& context) {
    if (device == nullptr) return invalid_value;
    *device = context.device;
    return success;
  });
}

DOUBLE_EXPORT int cuCtxSynchronize() {
  return with_context("cuCtxSynchronize", [](const Context& context) {
    synchronize(&context);
    return success;
  });
}

DOUBLE_EXPORT int cuMemAlloc_v2(DevicePointer* pointer, std::size_t size_bytes) {
  return with_context("cuMemAlloc_v2", [&](const Context& context) {
    if (pointer == nullptr || size_bytes == 0) return invalid_value;
    const std::lock_guard lock(state().mutex);
    const std::size_t allocated = state().allocated_bytes(context.device);
    if (size_bytes > state().memory_bytes - allocated) return out_of_memory;
    void* const memory =
        std::aligned_alloc(alignment, (size_bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) return out_of_memory;
    *pointer = reinterpret_cast<DevicePointer>(memory);
    state().allocations[*pointer] = {size_bytes, context.device};
    return success;
  });
}

// Of memory that is none of a device's it knows nothing.
DOUBLE_EXPORT int cuPointerGetAttribute(void* data, int attribute, DevicePointer pointer) {
  if (const int result = state().refusal("cuPointerGetAttribute")) return result;
  constexpr int device_ordinal = 9;
  if (data == nullptr || attribute != device_ordinal) return invalid_value;
  const std::lock_guard lock(state().mutex);
  const auto device = state().device_of(pointer);
  if (!device) return invalid_value;
  *static_cast<int*>(data) = *device;
  return success;
}

// As a device's does, it waits for what the device still has to do.
DOUBLE_EXPORT int cuMemFree_v2(DevicePointer pointer) {
  return with_context("cuMemFree_v2", [&](const Context& context) {
    if (pointer == 0) return success;
    synchronize(&context);
    const std::lock_guard lock(state().mutex);
    if (state().allocations.erase(pointer) == 0) return invalid_value;
    std::free(host(pointer));
    return success;
  });
}

DOUBLE_EXPORT int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return with_context("cuMemGetInfo_v2", [&](const Context& context) {
    if (free_bytes == nullptr || total_bytes == nullptr) return invalid_value;
    const std::lock_guard lock(state().mutex);
    *total_bytes = state().memory_bytes;
    *free_bytes = state().memory_bytes - state().allocated_bytes(context.device);
    return success;
  });
}

DOUBLE_EXPORT int cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t size_bytes) {
  return with_context("cuMemcpyHtoD_v2", [&](const Context&) -> int {
    if (!is_valid(to, size_bytes)) return invalid_value;
    return at_once([=] { std::memcpy(host(to), from, size_bytes); });
  });
}

DOUBLE_EXPORT int cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t size_bytes) {
  return with_context("cuMemcpyDtoH_v2", [&](const Context&) -> int {
    if (!is_valid(from, size_bytes)) return invalid_value;
    return at_once([=] { std::memcpy(to, host(from), size_bytes); });
  });
}

DOUBLE_EXPORT int cuMemsetD8_v2(DevicePointer to, unsigned char value, std::size_t size_bytes) {
  return with_context("cuMemsetD8_v2", [&](const Context&) -> int {
    if (!is_valid(to, size_bytes)) return invalid_value;
    return at_once([=] { std::memset(host(to), value, size_bytes); });
  });
}

DOUBLE_EXPORT int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t size_bytes,
                                       void* stream) {
  if (const int result = state().refusal("cuMemcpyHtoDAsync_v2")) return result;
  const Found found = find_stream(stream);
  if (found.result != success) return found.result;
  if (!is_valid(to, size_bytes)) return invalid_value;
  enqueue(found.entry, [=] { std::memcpy(host(to), from, size_bytes); });
  return success;
}

DOUBLE_EXPORT int cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t size_bytes,
                                       void* stream) {
  if (const int result = state().refusal("cuMemcpyDtoHAsync_v2")) return result;
  const Found found = find_stream(stream);
  if (found.result != success) return found.result;
  if (!is_valid(from, size_bytes)) return invalid_value;
  enqueue(found.entry, [=] { std::memcpy(to, host(from), size_bytes); });
  return success;
}
