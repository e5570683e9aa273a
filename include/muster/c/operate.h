#pragma once

// What a running server is told to change: muster/operate.h in C. Its settings are listed by
// `muster_inspect`, as MUSTER_INSPECT_SETTINGS. Included by muster/c.h.

#include "muster/c/store.h"
#include "muster/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// These need MUSTER_ROLE_SUPERVISOR, and but for the end of sessions the right "admin".

/// name   such as "memory-bytes-max"
/// value  a number, bytes, microseconds, or the level of a log as in muster_logger; 4: nothing
/// json   the setting as it is then, such as MUSTER_INSPECT_SETTINGS lists it; may be NULL
MUSTER_C_CHECKED muster_error* muster_set_setting(muster_store* store, const char* name,
                                                  uint64_t value, int64_t timeout,
                                                  muster_bytes** json);
/// session  its number, of MUSTER_INSPECT_SESSIONS
/// reason   text for people; NULL: none
/// ended    1
MUSTER_C_CHECKED muster_error* muster_end_session(muster_store* store, uint64_t session,
                                                  const char* reason, int64_t timeout,
                                                  uint64_t* ended);
/// process_id  32 hexadecimal digits
/// ended       how many sessions it had
MUSTER_C_CHECKED muster_error* muster_end_sessions_of(muster_store* store, const char* process_id,
                                                      const char* reason, int64_t timeout,
                                                      uint64_t* ended);
/// time_max  -1: it waits for everybody, the store that asks included
/// sessions  of others that are there, without observers
MUSTER_C_CHECKED muster_error* muster_drain(muster_store* store, int64_t time_max,
                                            const char* reason, int64_t timeout,
                                            uint64_t* sessions);
MUSTER_C_CHECKED muster_error* muster_cancel_drain(muster_store* store, int64_t timeout);

// Callback forms.

MUSTER_C_API void muster_set_setting_async(muster_store* store, const char* name, uint64_t value,
                                           int64_t timeout, muster_on_bytes done, void* user,
                                           muster_call** call);
MUSTER_C_API void muster_end_session_async(muster_store* store, uint64_t session,
                                           const char* reason, int64_t timeout,
                                           muster_on_count done, void* user, muster_call** call);
MUSTER_C_API void muster_end_sessions_of_async(muster_store* store, const char* process_id,
                                               const char* reason, int64_t timeout,
                                               muster_on_count done, void* user,
                                               muster_call** call);
MUSTER_C_API void muster_drain_async(muster_store* store, int64_t time_max, const char* reason,
                                     int64_t timeout, muster_on_count done, void* user,
                                     muster_call** call);
MUSTER_C_API void muster_cancel_drain_async(muster_store* store, int64_t timeout,
                                            muster_on_done done, void* user, muster_call** call);

#ifdef __cplusplus
}
#endif
