#pragma once

// Bytes, errors and calls. Included by muster/c.h, which says what holds of all of them.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_C_API __attribute__((visibility("default")))
#define MUSTER_C_CHECKED __attribute__((visibility("default"), warn_unused_result))

/// A struct with its size, and its defaults.
#define MUSTER_INIT(type) \
  { .size = sizeof(type) }

/// As a timeout: that of the options of the store or group. Timeouts below are `invalid_argument`.
#define MUSTER_DEFAULT_TIMEOUT INT64_C(-1)

typedef struct muster_store muster_store;
typedef struct muster_group muster_group;
typedef struct muster_io_thread muster_io_thread;  ///< may be shared by many stores
typedef struct muster_call muster_call;            ///< a call in its callback form
typedef struct muster_watch muster_watch;

/// The version of the library, such as "0.9.0".
MUSTER_C_API const char* muster_version(void);

// ---- Bytes.

/// Bytes that somebody else owns. `data` may be NULL if `size` is 0.
typedef struct muster_view {
  const void* data;
  size_t size;
} muster_view;

/// The bytes of a text, without its final zero. NULL: no bytes.
MUSTER_C_API muster_view muster_text(const char* text);

/// Bytes that the caller owns. A zero follows them that their size does not count.
typedef struct muster_bytes muster_bytes;
MUSTER_C_API muster_view muster_bytes_view(const muster_bytes* bytes);  ///< until they are freed
MUSTER_C_API void muster_bytes_free(muster_bytes* bytes);

/// A list of bytes. An element may be absent: that of a key that is not there.
typedef struct muster_list muster_list;
MUSTER_C_API size_t muster_list_count(const muster_list* list);
/// Sets `element`, until the list is freed.
///
/// returns  false if it is absent, or the list has no such index
MUSTER_C_API bool muster_list_at(const muster_list* list, size_t index, muster_view* element);
MUSTER_C_API void muster_list_free(muster_list* list);

// ---- Errors.

/// Whether a call that failed has done what it was to change.
enum {
  MUSTER_HAPPENED_UNSAID = 0,  ///< the call changes nothing
  MUSTER_HAPPENED_NO = 1,      ///< surely not: it may be repeated
  MUSTER_HAPPENED_MAYBE = 2,   ///< in doubt: look before it is repeated
};

typedef struct muster_error {
  size_t size;
  int32_t code;         ///< such as MUSTER_TIMED_OUT
  int32_t happened;     ///< such as MUSTER_HAPPENED_MAYBE
  const char* name;     ///< that of the code, such as "timed_out"
  const char* message;  ///< one line for people: what failed, where, which ranks, what to do
  const char* json;     ///< an object of all fields; docs/c.md lists them
} muster_error;

MUSTER_C_API void muster_error_free(muster_error* error);

/// The codes of muster/error.h. The numbers never change; later versions may add some.
enum {
  MUSTER_INVALID_ARGUMENT = 1,
  MUSTER_TOO_LARGE = 2,
  MUSTER_NOT_A_NUMBER = 3,
  MUSTER_OUT_OF_RANGE = 4,
  MUSTER_UNSUPPORTED = 5,
  MUSTER_CODEC_FAILURE = 6,
  MUSTER_BUSY = 7,
  MUSTER_WOULD_DEADLOCK = 8,
  MUSTER_FORKED = 9,
  MUSTER_NOT_FOUND = 20,
  MUSTER_TIMED_OUT = 21,
  MUSTER_CANCELLED = 22,
  MUSTER_CLOSED = 23,
  MUSTER_OUTCOME_UNKNOWN = 24,
  MUSTER_RESOURCE_EXHAUSTED = 25,
  MUSTER_UNAVAILABLE = 40,
  MUSTER_SUSPENDED = 41,
  MUSTER_SESSION_EXPIRED = 42,
  MUSTER_SERVER_RESTARTED = 43,
  MUSTER_FENCED = 44,
  MUSTER_PROTOCOL_ERROR = 45,
  MUSTER_ADDRESS_IN_USE = 46,
  MUSTER_PERMISSION_DENIED = 47,
  MUSTER_RANK_LOST = 60,
  MUSTER_RANK_LEFT = 61,
  MUSTER_RANK_IN_USE = 62,
  MUSTER_GROUP_MISMATCH = 63,
  MUSTER_GROUP_CLOSED = 64,
  MUSTER_STALE_EPOCH = 65,
  MUSTER_COLLECTIVE_MISMATCH = 66,
  MUSTER_CODEC_MISMATCH = 67,
  MUSTER_SEQUENCE_GAP = 68,
  MUSTER_EXPIRED = 69,
  MUSTER_INTERRUPTED = 70,
  MUSTER_LIBRARY_MISSING = 80,
  MUSTER_NCCL = 81,
  MUSTER_MISMATCH = 82,
  MUSTER_DUPLICATE_DEVICE = 83,
  MUSTER_NO_DEVICE = 84,
  MUSTER_ABORTED = 85,
  MUSTER_GLOO = 86,
  MUSTER_INTERNAL = 90,
  MUSTER_ENVIRONMENT = 100,
  MUSTER_NOT_INITIALIZED = 101,
  MUSTER_CALLBACK_FAILED = 102,
  MUSTER_WAY_MISSING = 103,
};

// ---- Calls in their callback form.

typedef void (*muster_on_done)(void* user, muster_error* error);
typedef void (*muster_on_flag)(void* user, muster_error* error, bool flag);
typedef void (*muster_on_number)(void* user, muster_error* error, int64_t number);
typedef void (*muster_on_count)(void* user, muster_error* error, uint64_t count);
typedef void (*muster_on_bytes)(void* user, muster_error* error, muster_bytes* bytes);
typedef void (*muster_on_list)(void* user, muster_error* error, muster_list* list);
typedef void (*muster_on_store)(void* user, muster_error* error, muster_store* store);
typedef void (*muster_on_group)(void* user, muster_error* error, muster_group* group);

/// Ends this call and no other: `done` gets `cancelled`, or what became of the call before. Nothing
/// happens when the call is over. As Call::cancel.
MUSTER_C_API void muster_call_cancel(muster_call* call);
MUSTER_C_API void muster_call_free(muster_call* call);

#ifdef __cplusplus
}
#endif
