#pragma once

// Muster for C11, and for languages that call C: the library muster-c (pkg-config: muster-c).
//
// A call that returns `muster_error*` returns NULL if it has worked. Else it returns an error,
// which the caller frees, and writes nothing to where its result would go. What a call promises,
// which errors it has and what it costs is said once, at the C++ call of the same name: in
// muster/store.h, muster/process_group.h, muster/inspect.h, muster/operate.h and muster/nccl_id.h.
// docs/c.md begins with an example.
//
// - Where a number or a flag would go may be NULL: it is not asked for. Where handles, bytes, lists
//   and documents go may not, unless that is said.
// - The caller owns handles and results, and frees each with the function whose name ends in
//   `_free`; NULL may be freed. Free a handle when no blocking call on it is in progress. Pending
//   calls in their callback form are allowed.
// - A call copies the bytes and texts that it takes, before it returns. A text is UTF-8 and ends
//   with a zero.
// - A struct of options begins with its size, and zero is the default of each field:
//   `muster_set_options options = MUSTER_INIT(muster_set_options);`. NULL stands for all defaults.
//   A struct that a call fills is prepared in the same way. The structs without a size
//   (muster_view, muster_entry, muster_nccl_id) stay as they are.
// - Times are microseconds.
// - The callback form of a call ends in `_async`. It never blocks, and calls `done` exactly once,
//   with `user`: on the handler thread, or where `muster_store_options` says; but before it returns
//   if an argument is wrong (`invalid_argument`), and where the C++ form does. What `done` gets
//   belongs to it; with an error the other values are zero. `done` may be NULL: nobody is told. If
//   `call` is not NULL, it is set before `done` can run, to what cancels this one call; it may be
//   freed at any time.
// - Any thread may call. A blocking call on the I/O thread fails with `would_deadlock`.
// - No exception leaves a call. A callback must return: it throws nothing, and jumps nowhere.

#include "muster/c/group.h"
#include "muster/c/inspect.h"
#include "muster/c/nccl.h"
#include "muster/c/operate.h"
#include "muster/c/store.h"
#include "muster/c/types.h"
