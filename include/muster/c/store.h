#pragma once

// Keys and values on a server, and the session that groups are made on: muster/store.h in C.
// Included by muster/c.h.

#include "muster/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- I/O threads, and where handlers run.

/// What stores may share: a thread that does their input and output, and one for handlers.
///
/// name     of the threads, of which the first 15 bytes count; NULL: "muster"
/// returns  NULL if the system has no thread, descriptor or memory left
MUSTER_C_API muster_io_thread* muster_io_thread_create(const char* name);
/// The same without threads, for a program with an event loop of its own, as
/// IoThread::create_for_host_loop: whenever `descriptor` is readable, it calls `serve_ready`.
MUSTER_C_API muster_io_thread* muster_io_thread_create_for_host_loop(void);
/// To be polled, and never closed; -1: it has a thread of its own.
MUSTER_C_API int muster_io_thread_descriptor(const muster_io_thread* thread);
/// Runs what is ready, also callbacks, and returns.
///
/// returns  whether something happened
MUSTER_C_API bool muster_io_thread_serve_ready(muster_io_thread* thread);
/// The host will not serve again.
MUSTER_C_API void muster_io_thread_finish(muster_io_thread* thread);
/// Its threads end when no store uses it any more.
MUSTER_C_API void muster_io_thread_free(muster_io_thread* thread);

/// Has `work(argument)` run once, on a thread that the application chooses. Called on the I/O
/// thread: it queues the work, and returns.
typedef void (*muster_executor)(void* user, void (*work)(void* argument), void* argument);

/// Levels of a line: 0 debug, 1 info, 2 warning, 3 error. The line ends with a zero, and belongs to
/// Muster. Called on any thread, also of the application's; must not block, and not call Muster.
typedef void (*muster_logger)(void* user, int level, const char* line);

enum { MUSTER_ROLE_CLIENT = 0, MUSTER_ROLE_OBSERVER = 1, MUSTER_ROLE_SUPERVISOR = 2 };

// ---- Stores.

typedef struct muster_store_options {
  size_t size;
  int32_t role;                 ///< MUSTER_ROLE_CLIENT
  bool inline_handlers;         ///< callbacks run on the I/O thread, and never block
  const char* name_space;       ///< of keys and groups
  const char* label;            ///< shown in errors at other ranks
  const char* credential_file;  ///< of a key; NULL: as StoreOptions says; docs/security.md
  const char* certificate_file;
  const char* certificate_key_file;
  const char* authorities_file;
  const char* server_name;
  int64_t timeout;          ///< of calls with MUSTER_DEFAULT_TIMEOUT; 0: 300 s
  int64_t wait_for_server;  ///< while nobody listens; 0: until the timeout; -1: not at all
  int64_t busy_poll;
  muster_io_thread* io_thread;  ///< NULL: one of its own
  muster_executor executor;
  void* executor_user;
  muster_logger logger;
  void* logger_user;
  muster_on_done on_session_end;  ///< as StoreOptions::on_session_end; owns its error
  void* on_session_end_user;
  int64_t namespace_idle_lifetime;  ///< of StoreOptions; 0: none; -1: its zero
  const char* run;                  ///< as StoreOptions::run
} muster_store_options;

typedef struct muster_set_options {
  size_t size;
  int64_t ttl;  ///< 0: until the key is removed
  bool only_if_absent;
  bool bind_to_session;
} muster_set_options;

/// A key and its value.
typedef struct muster_entry {
  muster_view key;
  muster_view value;
} muster_entry;

/// As Limits.
typedef struct muster_limits {
  size_t size;
  uint32_t key_bytes_max;
  uint32_t value_bytes_max;
  uint64_t round_bytes_max;
  uint32_t keys_per_operation_max;
  uint32_t world_size_max;
  int64_t heartbeat;
  int64_t session_timeout;
  int64_t grace;
  int64_t slack;
} muster_limits;

MUSTER_C_CHECKED muster_error* muster_store_connect(const char* address,
                                                    const muster_store_options* options,
                                                    int64_t timeout, muster_store** store);
MUSTER_C_API void muster_store_connect_async(const char* address,
                                             const muster_store_options* options, int64_t timeout,
                                             muster_on_store done, void* user, muster_call** call);
/// Ends the session, unless groups on it still exist.
MUSTER_C_API void muster_store_free(muster_store* store);
/// Ends the session, also under its groups. The handle is still to be freed.
MUSTER_C_API void muster_store_close(muster_store* store);
/// Ends all pending calls of the store. Async-signal-safe.
MUSTER_C_API void muster_store_cancel(muster_store* store);
MUSTER_C_CHECKED muster_error* muster_store_reopen(muster_store* store, int64_t timeout);
MUSTER_C_API void muster_store_reopen_async(muster_store* store, int64_t timeout,
                                            muster_on_done done, void* user, muster_call** call);
MUSTER_C_API void muster_store_limits(const muster_store* store, muster_limits* limits);
/// As it was given to `connect`; until the store is freed.
MUSTER_C_API const char* muster_store_address(const muster_store* store);
/// The id of this process, 32 hexadecimal digits, as errors of others and `report_dead` have it;
/// until the store is freed.
MUSTER_C_API const char* muster_store_process_id(const muster_store* store);
MUSTER_C_API uint64_t muster_store_incarnation(const muster_store* store);

// One key.

/// was_set  false if `only_if_absent` is set and the key exists
MUSTER_C_CHECKED muster_error* muster_store_set(muster_store* store, muster_view key,
                                                muster_view value,
                                                const muster_set_options* options, int64_t timeout,
                                                bool* was_set);
MUSTER_C_CHECKED muster_error* muster_store_get(muster_store* store, muster_view key,
                                                int64_t timeout, muster_bytes** value);
MUSTER_C_CHECKED muster_error* muster_store_take(muster_store* store, muster_view key,
                                                 int64_t timeout, muster_bytes** value);
MUSTER_C_CHECKED muster_error* muster_store_add(muster_store* store, muster_view key, int64_t delta,
                                                int64_t timeout, int64_t* sum);
/// expected  NULL: the key is to be absent
/// ttl       0: until the key is removed
/// applied   whether it was set
/// current   if it was not set: the value, or NULL if the key is absent. May be NULL
MUSTER_C_CHECKED muster_error* muster_store_compare_set(muster_store* store, muster_view key,
                                                        const muster_view* expected,
                                                        muster_view desired, int64_t ttl,
                                                        int64_t timeout, bool* applied,
                                                        muster_bytes** current);
MUSTER_C_CHECKED muster_error* muster_store_append(muster_store* store, muster_view key,
                                                   muster_view suffix, int64_t timeout,
                                                   uint64_t* value_bytes);
/// ttl  0: until the key is removed
MUSTER_C_CHECKED muster_error* muster_store_touch(muster_store* store, muster_view key, int64_t ttl,
                                                  int64_t timeout);
MUSTER_C_CHECKED muster_error* muster_store_remove(muster_store* store, muster_view key,
                                                   int64_t timeout, bool* existed);
MUSTER_C_CHECKED muster_error* muster_store_exists(muster_store* store, muster_view key,
                                                   int64_t timeout, bool* exists);
/// count  of the items that are there then
MUSTER_C_CHECKED muster_error* muster_store_queue_push(muster_store* store, muster_view key,
                                                       muster_view item, int64_t timeout,
                                                       uint64_t* count);
MUSTER_C_CHECKED muster_error* muster_store_queue_pop(muster_store* store, muster_view key,
                                                      int64_t timeout, muster_bytes** item);
MUSTER_C_CHECKED muster_error* muster_store_queue_length(muster_store* store, muster_view key,
                                                         int64_t timeout, uint64_t* count);

// Many keys.

MUSTER_C_CHECKED muster_error* muster_store_multi_remove(muster_store* store,
                                                         const muster_view* keys, size_t count,
                                                         int64_t timeout, uint64_t* removed);
/// exist  `count` elements
MUSTER_C_CHECKED muster_error* muster_store_multi_exists(muster_store* store,
                                                         const muster_view* keys, size_t count,
                                                         int64_t timeout, bool* exist);
MUSTER_C_CHECKED muster_error* muster_store_wait(muster_store* store, const muster_view* keys,
                                                 size_t count, int64_t timeout);
/// values  one element per key; that of a key that is not there is absent
MUSTER_C_CHECKED muster_error* muster_store_multi_get(muster_store* store, const muster_view* keys,
                                                      size_t count, int64_t timeout,
                                                      muster_list** values);
/// ttl  0: until the keys are removed
MUSTER_C_CHECKED muster_error* muster_store_multi_set(muster_store* store,
                                                      const muster_entry* entries, size_t count,
                                                      int64_t ttl, int64_t timeout);

/// One key of a page.
typedef struct muster_key_info {
  size_t size;
  muster_view key;  ///< until the page is freed
  uint64_t value_bytes;
  int64_t ttl;  ///< time left to live; -1: until it is removed
  bool bound;   ///< to a session
} muster_key_info;

typedef struct muster_page muster_page;
/// cursor  0 for the first page, then that of the page before
MUSTER_C_CHECKED muster_error* muster_store_list(muster_store* store, muster_view prefix,
                                                 uint64_t cursor, int64_t timeout,
                                                 muster_page** page);
MUSTER_C_API size_t muster_page_count(const muster_page* page);
/// returns  false if the page has no such index
MUSTER_C_API bool muster_page_at(const muster_page* page, size_t index, muster_key_info* info);
/// For the next page; 0: this was the last.
MUSTER_C_API uint64_t muster_page_cursor(const muster_page* page);
MUSTER_C_API void muster_page_free(muster_page* page);

// The session. These two need MUSTER_ROLE_SUPERVISOR.

/// process_id  32 hexadecimal digits
MUSTER_C_CHECKED muster_error* muster_store_report_dead(muster_store* store, const char* process_id,
                                                        const char* reason, int64_t timeout);
/// keys  how many it had
MUSTER_C_CHECKED muster_error* muster_store_drop_namespace(muster_store* store, const char* name,
                                                           int64_t timeout, uint64_t* keys);

// Callback forms.

/// current  if it was not set: the value, or NULL if the key is absent
typedef void (*muster_on_compared)(void* user, muster_error* error, bool applied,
                                   muster_bytes* current);
/// exist  `count` elements, which are valid until the callback returns
typedef void (*muster_on_flags)(void* user, muster_error* error, const bool* exist, size_t count);
typedef void (*muster_on_page)(void* user, muster_error* error, muster_page* page);

MUSTER_C_API void muster_store_set_async(muster_store* store, muster_view key, muster_view value,
                                         const muster_set_options* options, int64_t timeout,
                                         muster_on_flag done, void* user, muster_call** call);
MUSTER_C_API void muster_store_get_async(muster_store* store, muster_view key, int64_t timeout,
                                         muster_on_bytes done, void* user, muster_call** call);
MUSTER_C_API void muster_store_take_async(muster_store* store, muster_view key, int64_t timeout,
                                          muster_on_bytes done, void* user, muster_call** call);
MUSTER_C_API void muster_store_add_async(muster_store* store, muster_view key, int64_t delta,
                                         int64_t timeout, muster_on_number done, void* user,
                                         muster_call** call);
MUSTER_C_API void muster_store_compare_set_async(muster_store* store, muster_view key,
                                                 const muster_view* expected, muster_view desired,
                                                 int64_t ttl, int64_t timeout,
                                                 muster_on_compared done, void* user,
                                                 muster_call** call);
MUSTER_C_API void muster_store_append_async(muster_store* store, muster_view key,
                                            muster_view suffix, int64_t timeout,
                                            muster_on_count done, void* user, muster_call** call);
MUSTER_C_API void muster_store_touch_async(muster_store* store, muster_view key, int64_t ttl,
                                           int64_t timeout, muster_on_done done, void* user,
                                           muster_call** call);
MUSTER_C_API void muster_store_remove_async(muster_store* store, muster_view key, int64_t timeout,
                                            muster_on_flag done, void* user, muster_call** call);
MUSTER_C_API void muster_store_exists_async(muster_store* store, muster_view key, int64_t timeout,
                                            muster_on_flag done, void* user, muster_call** call);
MUSTER_C_API void muster_store_queue_push_async(muster_store* store, muster_view key,
                                                muster_view item, int64_t timeout,
                                                muster_on_count done, void* user,
                                                muster_call** call);
MUSTER_C_API void muster_store_queue_pop_async(muster_store* store, muster_view key,
                                               int64_t timeout, muster_on_bytes done, void* user,
                                               muster_call** call);
MUSTER_C_API void muster_store_queue_length_async(muster_store* store, muster_view key,
                                                  int64_t timeout, muster_on_count done, void* user,
                                                  muster_call** call);
MUSTER_C_API void muster_store_multi_remove_async(muster_store* store, const muster_view* keys,
                                                  size_t count, int64_t timeout,
                                                  muster_on_count done, void* user,
                                                  muster_call** call);
MUSTER_C_API void muster_store_multi_exists_async(muster_store* store, const muster_view* keys,
                                                  size_t count, int64_t timeout,
                                                  muster_on_flags done, void* user,
                                                  muster_call** call);
MUSTER_C_API void muster_store_wait_async(muster_store* store, const muster_view* keys,
                                          size_t count, int64_t timeout, muster_on_done done,
                                          void* user, muster_call** call);
MUSTER_C_API void muster_store_multi_get_async(muster_store* store, const muster_view* keys,
                                               size_t count, int64_t timeout, muster_on_list done,
                                               void* user, muster_call** call);
MUSTER_C_API void muster_store_multi_set_async(muster_store* store, const muster_entry* entries,
                                               size_t count, int64_t ttl, int64_t timeout,
                                               muster_on_done done, void* user, muster_call** call);
MUSTER_C_API void muster_store_list_async(muster_store* store, muster_view prefix, uint64_t cursor,
                                          int64_t timeout, muster_on_page done, void* user,
                                          muster_call** call);
MUSTER_C_API void muster_store_report_dead_async(muster_store* store, const char* process_id,
                                                 const char* reason, int64_t timeout,
                                                 muster_on_done done, void* user,
                                                 muster_call** call);
MUSTER_C_API void muster_store_drop_namespace_async(muster_store* store, const char* name,
                                                    int64_t timeout, muster_on_count done,
                                                    void* user, muster_call** call);

#ifdef __cplusplus
}
#endif
