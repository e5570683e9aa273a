#pragma once

// The functions of NCCL and of the CUDA driver that muster-nccl calls, as tables. They are filled
// from the libraries that the process has or finds; a host that links NCCL statically fills them
// itself (muster/nccl_linked.h does, and needs nccl.h). Neither nccl.h nor cuda.h is needed here.

#include <cstddef>
#include <cstdint>

#include "muster/config.h"
#include "muster/nccl_id.h"

MUSTER_BEGIN_NAMESPACE

namespace nccl {

using Handle = void*;      ///< ncclComm_t
using CudaStream = void*;  ///< CUstream, cudaStream_t; null: the default stream

/// The front of ncclConfig_t, which all versions from 2.18 on share: NCCL reads `size` bytes and
/// takes the rest by default.
struct Config {
  static constexpr int undefined = -2147483647 - 1;  // NCCL_CONFIG_UNDEF_INT

  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;
  int cga_cluster_size = undefined;
  int ctas_min = undefined;
  int ctas_max = undefined;
  const char* net_name = nullptr;
  int split_share = undefined;
};

/// As nccl.h declares them: results are ncclResult_t, types ncclDataType_t, operations
/// ncclRedOp_t, all ints. None may be null but those of the second part.
struct Functions {
  int (*get_version)(int* version) = nullptr;
  int (*get_unique_id)(UniqueId* id) = nullptr;
  int (*comm_init_rank_config)(Handle* handle, int world_size, UniqueId id, int rank,
                               Config* config) = nullptr;
  int (*comm_get_async_error)(Handle handle, int* error) = nullptr;
  int (*comm_abort)(Handle handle) = nullptr;
  int (*comm_finalize)(Handle handle) = nullptr;
  int (*comm_destroy)(Handle handle) = nullptr;
  const char* (*get_error_string)(int result) = nullptr;
  const char* (*get_last_error)(Handle handle) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void* send, void* receive, std::size_t count, int type, int operation,
                    Handle handle, CudaStream stream) = nullptr;
  int (*broadcast)(const void* send, void* receive, std::size_t count, int type, int root,
                   Handle handle, CudaStream stream) = nullptr;
  int (*reduce)(const void* send, void* receive, std::size_t count, int type, int operation,
                int root, Handle handle, CudaStream stream) = nullptr;
  int (*all_gather)(const void* send, void* receive, std::size_t send_count, int type,
                    Handle handle, CudaStream stream) = nullptr;
  int (*reduce_scatter)(const void* send, void* receive, std::size_t receive_count, int type,
                        int operation, Handle handle, CudaStream stream) = nullptr;
  int (*send)(const void* buffer, std::size_t count, int type, int peer, Handle handle,
              CudaStream stream) = nullptr;
  int (*recv)(void* buffer, std::size_t count, int type, int peer, Handle handle,
              CudaStream stream) = nullptr;

  // From 2.28 on; without them grouped sends and receives are used.
  int (*all_to_all)(const void* send, void* receive, std::size_t count, int type, Handle handle,
                    CudaStream stream) = nullptr;
  int (*gather)(const void* send, void* receive, std::size_t count, int type, int root,
                Handle handle, CudaStream stream) = nullptr;
  int (*scatter)(const void* send, void* receive, std::size_t count, int type, int root,
                 Handle handle, CudaStream stream) = nullptr;
  // Without both of them scaled_sum is refused. residence: an ncclScalarResidence_t.
  int (*red_op_create_pre_mul_sum)(int* operation, void* factor, int type, int residence,
                                   Handle handle) = nullptr;
  int (*red_op_destroy)(int operation, Handle handle) = nullptr;
};

/// Of the CUDA driver, as cuda.h declares them in their present versions (`_v2` where there is
/// one): results are CUresult, devices CUdevice, both ints, contexts CUcontext. None may be null.
struct CudaFunctions {
  int (*init)(unsigned flags) = nullptr;
  int (*get_error_string)(int result, const char** text) = nullptr;
  int (*device_get_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_get_uuid)(unsigned char* uuid, int device) = nullptr;  // of 16 bytes
  int (*device_primary_ctx_retain)(void** context, int device) = nullptr;
  int (*device_primary_ctx_release)(int device) = nullptr;
  int (*ctx_push_current)(void* context) = nullptr;
  int (*ctx_pop_current)(void** context) = nullptr;
  int (*stream_create)(CudaStream* stream, unsigned flags) = nullptr;
  int (*stream_destroy)(CudaStream stream) = nullptr;
  int (*stream_query)(CudaStream stream) = nullptr;
  int (*mem_alloc)(std::uintptr_t* address, std::size_t bytes) = nullptr;
  int (*mem_free)(std::uintptr_t address) = nullptr;
};

}  // namespace nccl

MUSTER_END_NAMESPACE
