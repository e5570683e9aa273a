#pragma once

// What a server tells of itself, as JSON: muster/inspect.h in C. docs/c.md lists the fields of each
// document; they are those of `musterctl --json`. Included by muster/c.h.

#include "muster/c/group.h"
#include "muster/c/store.h"
#include "muster/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What to inspect.
enum {
  MUSTER_INSPECT_STATUS = 1,    ///< an object of names and values
  MUSTER_INSPECT_SESSIONS = 2,  ///< a list; so are the next four
  MUSTER_INSPECT_GROUPS = 3,
  MUSTER_INSPECT_WAITERS = 4,
  MUSTER_INSPECT_OBJECTS = 5,  ///< name: the beginning of their paths
  MUSTER_INSPECT_NAMESPACES = 6,
  MUSTER_INSPECT_GROUP = 7,      ///< name: of the group
  MUSTER_INSPECT_IDENTITY = 8,   ///< whom the server takes the store for
  MUSTER_INSPECT_HISTORY = 9,    ///< what happened to groups; name: of one; NULL: to all
  MUSTER_INSPECT_SETTINGS = 10,  ///< a list; name: of the only one; NULL: of all
};

/// Asks the server, and gives its answer as a document in JSON.
///
/// what  such as MUSTER_INSPECT_GROUPS
/// name  where `what` asks for one; else NULL
MUSTER_C_CHECKED muster_error* muster_inspect(muster_store* store, int what, const char* name,
                                              int64_t timeout, muster_bytes** json);
/// The members of the epoch and the candidates, a list in JSON.
MUSTER_C_CHECKED muster_error* muster_group_members(muster_group* group, int64_t timeout,
                                                    muster_bytes** json);
MUSTER_C_API void muster_group_members_async(muster_group* group, int64_t timeout,
                                             muster_on_bytes done, void* user, muster_call** call);

#ifdef __cplusplus
}
#endif
