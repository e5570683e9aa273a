#include "nccl/doubles/exported.h"
#include "nccl/doubles/group.h"

// Of NCCL's interface: groups, collectives, sends and receives.

using nccl_double::Kind;
using nccl_double::submit;

DOUBLE_EXPORT int ncclGroupStart() {
  nccl_double::start_group();
  return nccl_double::success;
}

DOUBLE_EXPORT int ncclGroupEnd() { return nccl_double::end_group(); }

DOUBLE_EXPORT int ncclAllReduce(const void* from, void* to, std::size_t count, int type,
                                int reduction, void* handle, void* stream) {
  return submit(handle, stream, {Kind::all_reduce, from, to, count, type, reduction, 0});
}

DOUBLE_EXPORT int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root,
                                void* handle, void* stream) {
  return submit(handle, stream, {Kind::broadcast, from, to, count, type, 0, root});
}

DOUBLE_EXPORT int ncclReduce(const void* from, void* to, std::size_t count, int type, int reduction,
                             int root, void* handle, void* stream) {
  return submit(handle, stream, {Kind::reduce, from, to, count, type, reduction, root});
}

DOUBLE_EXPORT int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                                void* handle, void* stream) {
  return submit(handle, stream, {Kind::all_gather, from, to, count, type, 0, 0});
}

DOUBLE_EXPORT int ncclReduceScatter(const void* from, void* to, std::size_t count, int type,
                                    int reduction, void* handle, void* stream) {
  return submit(handle, stream, {Kind::reduce_scatter, from, to, count, type, reduction, 0});
}

DOUBLE_EXPORT int ncclSend(const void* from, std::size_t count, int type, int peer, void* handle,
                           void* stream) {
  return submit(handle, stream, {Kind::send, from, nullptr, count, type, 0, peer});
}

DOUBLE_EXPORT int ncclRecv(void* to, std::size_t count, int type, int peer, void* handle,
                           void* stream) {
  return submit(handle, stream, {Kind::receive, nullptr, to, count, type, 0, peer});
}
