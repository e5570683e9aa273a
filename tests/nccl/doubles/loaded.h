#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "nccl/doubles/nccl_types.h"

// The doubles in a test: loaded once by the paths in CUDA_DOUBLE and NCCL_DOUBLE, for the whole
// process, with what they take the place of and what only they have. That of NCCL finds the loaded
// double of CUDA by its name, as NCCL does. A test that wants none of what only they have runs with
// the real libraries, too.

namespace muster::test {

/// A library that stays loaded, by the path in an environment variable.
class Loaded {
 public:
  explicit Loaded(const char* variable) {
    const char* const path = std::getenv(variable);
    if (path == nullptr) throw std::runtime_error(std::string(variable) + " is not set");
    handle_ = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(::dlerror());
  }

  /// Becomes whatever function it is assigned to.
  struct Symbol {
    void* address;
    template <class Signature>
    operator Signature*() const {
      return reinterpret_cast<Signature*>(address);
    }
  };
  Symbol operator[](const char* name) const {
    void* const address = ::dlsym(handle_, name);
    if (address == nullptr) throw std::runtime_error(std::string("there is no ") + name);
    return {address};
  }
  /// What only a double has: null in the library that it takes the place of.
  Symbol control(const char* name) const { return {::dlsym(handle_, name)}; }

 private:
  void* handle_;
};

using DevicePointer = unsigned long long;

struct CudaDouble {
  Loaded in{"CUDA_DOUBLE"};

  void (*reset)() = in.control("cuda_double_reset");
  void (*set_devices)(int count) = in.control("cuda_double_set_devices");
  void (*set_uuid)(int device, const unsigned char* uuid) = in.control("cuda_double_set_uuid");
  void (*set_driver_version)(int version) = in.control("cuda_double_set_driver_version");
  void (*set_init_result)(int result) = in.control("cuda_double_set_init_result");
  void (*fail)(const char* function, int result) = in.control("cuda_double_fail");
  long (*alive)(const char* kind) = in.control("cuda_double_alive");

  int (*init)(unsigned flags) = in["cuInit"];
  int (*driver_version)(int* version) = in["cuDriverGetVersion"];
  int (*device_count)(int* count) = in["cuDeviceGetCount"];
  int (*device_uuid)(unsigned char* uuid, int device) = in["cuDeviceGetUuid_v2"];
  int (*retain)(void** context, int device) = in["cuDevicePrimaryCtxRetain"];
  int (*release)(int device) = in["cuDevicePrimaryCtxRelease_v2"];
  int (*current)(void** context) = in["cuCtxGetCurrent"];
  int (*set_current)(void* context) = in["cuCtxSetCurrent"];
  int (*push)(void* context) = in["cuCtxPushCurrent_v2"];
  int (*pop)(void** context) = in["cuCtxPopCurrent_v2"];
  int (*current_device)(int* device) = in["cuCtxGetDevice"];
  int (*synchronize)() = in["cuCtxSynchronize"];
  int (*allocate)(DevicePointer* pointer, std::size_t size_bytes) = in["cuMemAlloc_v2"];
  int (*free)(DevicePointer pointer) = in["cuMemFree_v2"];
  int (*memory)(std::size_t* free_bytes, std::size_t* total_bytes) = in["cuMemGetInfo_v2"];
  int (*copy_in)(DevicePointer to, const void* from, std::size_t) = in["cuMemcpyHtoD_v2"];
  int (*copy_out)(void* to, DevicePointer from, std::size_t) = in["cuMemcpyDtoH_v2"];
  int (*copy_in_later)(DevicePointer to, const void* from, std::size_t,
                       void* stream) = in["cuMemcpyHtoDAsync_v2"];
  int (*copy_out_later)(void* to, DevicePointer from, std::size_t,
                        void* stream) = in["cuMemcpyDtoHAsync_v2"];
  int (*set_bytes)(DevicePointer to, unsigned char value, std::size_t) = in["cuMemsetD8_v2"];
  int (*create_stream)(void** stream, unsigned flags) = in["cuStreamCreate"];
  int (*destroy_stream)(void* stream) = in["cuStreamDestroy_v2"];
  int (*synchronize_stream)(void* stream) = in["cuStreamSynchronize"];
  int (*query_stream)(void* stream) = in["cuStreamQuery"];
  int (*create_event)(void** event, unsigned flags) = in["cuEventCreate"];
  int (*record_event)(void* event, void* stream) = in["cuEventRecord"];
  int (*query_event)(void* event) = in["cuEventQuery"];
  int (*synchronize_event)(void* event) = in["cuEventSynchronize"];
  int (*destroy_event)(void* event) = in["cuEventDestroy_v2"];
  int (*launch)(void* stream, void (*function)(void*), void* argument) = in["cuLaunchHostFunc"];
  int (*error_name)(int result, const char** name) = in["cuGetErrorName"];
};

/// As nccl.h numbers it.
inline constexpr int int32_type = 2;
inline constexpr int float32_type = 7;

struct NcclDouble {
  using UniqueId = nccl_double::UniqueId;
  using Config = nccl_double::Config;
  Loaded in{"NCCL_DOUBLE"};

  void (*refuse)(int result) = in.control("nccl_double_refuse");
  int (*waiting)() = in.control("nccl_double_waiting");
  int (*fault)(const char* text) = in.control("nccl_double_fault");
  void (*clear_faults)() = in.control("nccl_double_clear_faults");
  void (*set_version)(int version) = in.control("nccl_double_set_version");
  void (*set_leaks)(int number) = in.control("nccl_double_set_leaks");
  long (*count)(const char* kind) = in.control("nccl_double_count");
  const char* (*last_mismatch)() = in.control("nccl_double_last_mismatch");

  int (*version)(int* version) = in["ncclGetVersion"];
  int (*unique_id)(UniqueId* id) = in["ncclGetUniqueId"];
  int (*init)(void** communicator, int rank_count, UniqueId id, int rank,
              const Config* config) = in["ncclCommInitRankConfig"];
  int (*init_blocking)(void** communicator, int rank_count, UniqueId id,
                       int rank) = in["ncclCommInitRank"];
  int (*async_error)(const void* communicator, int* result) = in["ncclCommGetAsyncError"];
  int (*abort)(void* communicator) = in["ncclCommAbort"];
  int (*finalize)(void* communicator) = in["ncclCommFinalize"];
  int (*destroy)(void* communicator) = in["ncclCommDestroy"];
  const char* (*error_string)(int result) = in["ncclGetErrorString"];
  const char* (*last_error)(const void* communicator) = in["ncclGetLastError"];
  int (*rank_count)(const void* communicator, int* count) = in["ncclCommCount"];
  int (*rank)(const void* communicator, int* rank) = in["ncclCommUserRank"];
  int (*device)(const void* communicator, int* device) = in["ncclCommCuDevice"];
  int (*group_start)() = in["ncclGroupStart"];
  int (*group_end)() = in["ncclGroupEnd"];
  int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int reduction,
                    void* communicator, void* stream) = in["ncclAllReduce"];
  int (*broadcast)(const void* from, void* to, std::size_t count, int type, int root,
                   void* communicator, void* stream) = in["ncclBroadcast"];
  int (*reduce)(const void* from, void* to, std::size_t count, int type, int reduction, int root,
                void* communicator, void* stream) = in["ncclReduce"];
  int (*all_gather)(const void* from, void* to, std::size_t count, int type, void* communicator,
                    void* stream) = in["ncclAllGather"];
  int (*reduce_scatter)(const void* from, void* to, std::size_t count, int type, int reduction,
                        void* communicator, void* stream) = in["ncclReduceScatter"];
  int (*create_red_op)(int* op, const void* factor, int type, int residence,
                       void* communicator) = in["ncclRedOpCreatePreMulSum"];
  int (*destroy_red_op)(int op, void* communicator) = in["ncclRedOpDestroy"];
  int (*send)(const void* from, std::size_t count, int type, int peer, void* communicator,
              void* stream) = in["ncclSend"];
  int (*receive)(void* to, std::size_t count, int type, int peer, void* communicator,
                 void* stream) = in["ncclRecv"];
  int (*split)(void* communicator, int color, int key, void** child,
               const Config* config) = in["ncclCommSplit"];
  int (*shrink)(void* communicator, const int* excluded, int excluded_count, void** child,
                const Config* config, int flags) = in["ncclCommShrink"];
  int (*revoke)(void* communicator, int flags) = in["ncclCommRevoke"];
};

/// CUDA first, so that NCCL finds it.
inline const CudaDouble& cuda() {
  static const CudaDouble one;
  return one;
}
inline const NcclDouble& nccl() {
  static const NcclDouble& one = (cuda(), *new NcclDouble);
  return one;
}

inline NcclDouble::Config nonblocking_config() {
  NcclDouble::Config config{};
  config.size = sizeof config;
  config.magic = nccl_double::config_magic;
  config.version = 22809;
  config.blocking = 0;
  return config;
}

inline NcclDouble::UniqueId new_id() {
  NcclDouble::UniqueId id{};
  if (nccl().unique_id(&id) != 0) throw std::runtime_error("there is no id");
  return id;
}

inline int async_error(const void* communicator) {
  int result = -1;
  nccl().async_error(communicator, &result);
  return result;
}

/// Whether a call of a collective has this result that is in order: it is done, or in progress.
inline bool begins(int result) { return result == 0 || result == 7; }

/// A device's primary context, current in this thread while this lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : device_(device) {
    if (cuda().init(0) != 0 || cuda().retain(&context_, device) != 0 ||
        cuda().push(context_) != 0) {
      throw std::runtime_error("there is no such device");
    }
  }
  ~CurrentDevice() {
    void* popped = nullptr;
    cuda().pop(&popped);
    cuda().release(device_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int device_;
  void* context_ = nullptr;
};

}  // namespace muster::test
