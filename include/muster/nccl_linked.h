#pragma once

// For a host that links NCCL itself: its functions as the table that muster-nccl takes. The only
// header that needs nccl.h.

#include <nccl.h>

#include "muster/nccl_functions.h"

MUSTER_BEGIN_NAMESPACE

namespace nccl {
namespace linked {

/// The same function under the types of Functions; only handles, enumerations and the structs
/// of the same layout may differ.
template <class Wanted, class Given>
Wanted as(Given* given) {
  static_assert(sizeof(ncclUniqueId) == sizeof(UniqueId), "another NCCL than this is made for");
  static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int) &&
                    sizeof(ncclRedOp_t) == sizeof(int),
                "NCCL's enumerations are ints");
  static_assert(offsetof(ncclConfig_t, splitShare) == offsetof(Config, split_share) &&
                    offsetof(ncclConfig_t, blocking) == offsetof(Config, blocking),
                "NCCL's configuration begins as ours");
  return reinterpret_cast<Wanted>(reinterpret_cast<void (*)()>(given));
}

}  // namespace linked

/// The functions of the NCCL that this program is linked with.
inline Functions linked_functions() {
  using linked::as;
  Functions table;
  table.get_version = as<decltype(table.get_version)>(&ncclGetVersion);
  table.get_unique_id = as<decltype(table.get_unique_id)>(&ncclGetUniqueId);
  table.comm_init_rank_config = as<decltype(table.comm_init_rank_config)>(&ncclCommInitRankConfig);
  table.comm_get_async_error = as<decltype(table.comm_get_async_error)>(&ncclCommGetAsyncError);
  table.comm_abort = as<decltype(table.comm_abort)>(&ncclCommAbort);
  table.comm_finalize = as<decltype(table.comm_finalize)>(&ncclCommFinalize);
  table.comm_destroy = as<decltype(table.comm_destroy)>(&ncclCommDestroy);
  table.get_error_string = as<decltype(table.get_error_string)>(&ncclGetErrorString);
  table.get_last_error = as<decltype(table.get_last_error)>(&ncclGetLastError);
  table.group_start = as<decltype(table.group_start)>(&ncclGroupStart);
  table.group_end = as<decltype(table.group_end)>(&ncclGroupEnd);
  table.all_reduce = as<decltype(table.all_reduce)>(&ncclAllReduce);
  table.broadcast = as<decltype(table.broadcast)>(&ncclBroadcast);
  table.reduce = as<decltype(table.reduce)>(&ncclReduce);
  table.all_gather = as<decltype(table.all_gather)>(&ncclAllGather);
  table.reduce_scatter = as<decltype(table.reduce_scatter)>(&ncclReduceScatter);
  table.send = as<decltype(table.send)>(&ncclSend);
  table.recv = as<decltype(table.recv)>(&ncclRecv);
  table.red_op_create_pre_mul_sum =
      as<decltype(table.red_op_create_pre_mul_sum)>(&ncclRedOpCreatePreMulSum);
  table.red_op_destroy = as<decltype(table.red_op_destroy)>(&ncclRedOpDestroy);
#if NCCL_VERSION_CODE >= 22800
  table.all_to_all = as<decltype(table.all_to_all)>(&ncclAlltoAll);
  table.gather = as<decltype(table.gather)>(&ncclGather);
  table.scatter = as<decltype(table.scatter)>(&ncclScatter);
#endif
  return table;
}

}  // namespace nccl

MUSTER_END_NAMESPACE
