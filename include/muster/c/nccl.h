#pragma once

// Ids of NCCL communicators: muster/nccl_id.h in C. libnccl is loaded when an id is first made;
// that needs no GPU. Included by muster/c.h.

#include "muster/c/group.h"
#include "muster/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The bytes of an ncclUniqueId.
typedef struct muster_nccl_id {
  uint8_t bytes[128];
} muster_nccl_id;

/// Agrees on the id of one new communicator. Collective.
///
/// timeout  above zero, and not MUSTER_DEFAULT_TIMEOUT
/// given    an id that was made elsewhere; NULL: rank 0 makes one
/// library  the path of libnccl; NULL: the one that is loaded, or that the dynamic linker finds
MUSTER_C_CHECKED muster_error* muster_nccl_unique_id(muster_group* group, int64_t timeout,
                                                     const muster_nccl_id* given,
                                                     const char* library, muster_nccl_id* id);
/// Ends an id that nobody will use any more, in the process that made it.
///
/// returns  whether it was done
MUSTER_C_API bool muster_nccl_give_up(const muster_nccl_id* id);

#ifdef __cplusplus
}
#endif
