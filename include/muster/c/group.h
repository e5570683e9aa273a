#pragma once

// Groups of processes: muster/process_group.h in C. Objects are bytes that a codec has encoded; the
// ranks must name the same codec. Included by muster/c.h.

#include "muster/c/store.h"
#include "muster/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Ids of codecs: what the bytes of an object are. Those of applications begin at 256. As in
/// muster/codec.h; what is missing here are formats of C++ or Python alone.
enum {
  MUSTER_CODEC_RAW = 1,   ///< bytes as they are, muster/codec_raw.h
  MUSTER_CODEC_JSON = 3,  ///< a text in JSON, muster/codec_json.h
};

typedef struct muster_group_options {
  size_t size;
  int64_t data_expiration;  ///< 0: one hour
  int64_t timeout;          ///< of joining, and of calls with MUSTER_DEFAULT_TIMEOUT; 0: 300 s
  bool standby;
  muster_view info;  ///< what the other members can read
  const char* const* other_tenants;
  size_t other_tenants_count;
  muster_on_done on_loss;   ///< as GroupOptions::on_loss; owns its error
  muster_on_done on_leave;  ///< as GroupOptions::on_leave
  void* user;               ///< of both
} muster_group_options;

enum { MUSTER_HOST_AUTOMATIC = 0, MUSTER_HOST_ALWAYS = 1, MUSTER_HOST_NEVER = 2 };

typedef struct muster_hosted_options {
  size_t size;
  const char* name;     ///< of the group; NULL: "default"
  int32_t host_server;  ///< MUSTER_HOST_AUTOMATIC
  bool allow_unauthenticated;
  bool has_listening_socket;
  int32_t listening_socket;  ///< for rank 0, which takes ownership; only if `has_listening_socket`
  const muster_group_options* group;
  const muster_store_options* store;
} muster_hosted_options;

/// Joins the group `name` on a store, which may be freed while the group goes on.
MUSTER_C_CHECKED muster_error* muster_group_create(muster_store* store, const char* name, int rank,
                                                   int world_size,
                                                   const muster_group_options* options,
                                                   muster_group** group);
MUSTER_C_API void muster_group_create_async(muster_store* store, const char* name, int rank,
                                            int world_size, const muster_group_options* options,
                                            muster_on_group done, void* user, muster_call** call);
/// Joins a group at an address, where rank 0 starts a server.
///
/// host, port  as of the C++ call: a name or an address and a port, or "unix:/path" and 0
MUSTER_C_CHECKED muster_error* muster_group_create_hosted(const char* host, uint16_t port, int rank,
                                                          int world_size,
                                                          const muster_hosted_options* options,
                                                          muster_group** group);
/// Leaves the group without waiting.
MUSTER_C_API void muster_group_free(muster_group* group);
/// Leaves, and waits for the others if this process hosts the server. The handle is still to be
/// freed.
///
/// linger     at most so long
/// remaining  how many other sessions had not ended
MUSTER_C_CHECKED muster_error* muster_group_close(muster_group* group, int64_t linger,
                                                  uint64_t* remaining);
MUSTER_C_CHECKED muster_error* muster_group_leave(muster_group* group, int64_t timeout);
MUSTER_C_API void muster_group_leave_async(muster_group* group, int64_t timeout,
                                           muster_on_done done, void* user, muster_call** call);
/// Ends all pending calls of the group. Async-signal-safe.
MUSTER_C_API void muster_group_cancel(muster_group* group);

MUSTER_C_API int muster_group_rank(const muster_group* group);
MUSTER_C_API int muster_group_world_size(const muster_group* group);
MUSTER_C_API uint64_t muster_group_epoch(const muster_group* group);
MUSTER_C_API const char* muster_group_name(const muster_group* group);  ///< until it is freed

typedef struct muster_group_counters {
  size_t size;
  uint64_t rounds;
  uint64_t objects_sent;
  uint64_t objects_received;
} muster_group_counters;
MUSTER_C_API void muster_group_counters_of(const muster_group* group,
                                           muster_group_counters* counters);
/// A further handle of the store that the group is on, to be freed.
MUSTER_C_API muster_store* muster_group_store(const muster_group* group);

// Streams.

MUSTER_C_CHECKED muster_error* muster_group_send(muster_group* group, int destination,
                                                 uint32_t codec, muster_view object, uint64_t tag,
                                                 int64_t timeout);
/// sequence  of the object, from 0 for each source and tag
MUSTER_C_CHECKED muster_error* muster_group_recv(muster_group* group, int source, uint32_t codec,
                                                 uint64_t tag, int64_t timeout,
                                                 muster_bytes** object, uint64_t* sequence);

/// An object that has come and is not received yet. Until it is freed, other receives of its source
/// and tag are `busy`.
typedef struct muster_delivery muster_delivery;
MUSTER_C_CHECKED muster_error* muster_group_recv_delivery(muster_group* group, int source,
                                                          uint32_t codec, uint64_t tag,
                                                          int64_t timeout,
                                                          muster_delivery** delivery);
/// Until it is accepted or freed; once it is accepted, ask again.
MUSTER_C_API muster_view muster_delivery_view(const muster_delivery* delivery);
/// The object is received.
///
/// returns  its sequence
MUSTER_C_API uint64_t muster_delivery_accept(muster_delivery* delivery);
/// Refuses the object if it was not accepted: the next receive gets it again.
MUSTER_C_API void muster_delivery_free(muster_delivery* delivery);

typedef void (*muster_on_object)(void* user, muster_error* error, muster_bytes* object,
                                 uint64_t sequence);
typedef void (*muster_on_delivery)(void* user, muster_error* error, muster_delivery* delivery);
MUSTER_C_API void muster_group_send_async(muster_group* group, int destination, uint32_t codec,
                                          muster_view object, uint64_t tag, int64_t timeout,
                                          muster_on_done done, void* user, muster_call** call);
MUSTER_C_API void muster_group_recv_async(muster_group* group, int source, uint32_t codec,
                                          uint64_t tag, int64_t timeout, muster_on_object done,
                                          void* user, muster_call** call);
MUSTER_C_API void muster_group_recv_delivery_async(muster_group* group, int source, uint32_t codec,
                                                   uint64_t tag, int64_t timeout,
                                                   muster_on_delivery done, void* user,
                                                   muster_call** call);

/// Drops objects that this rank has sent and nobody has received.
///
/// older_than  0: the group's expiration
MUSTER_C_CHECKED muster_error* muster_group_expire_data(muster_group* group, int64_t older_than,
                                                        int64_t timeout, uint64_t* dropped);
MUSTER_C_API void muster_group_expire_data_async(muster_group* group, int64_t older_than,
                                                 int64_t timeout, muster_on_count done, void* user,
                                                 muster_call** call);

// Collectives: all ranks call them in the same order.

/// Ranks in ascending order.
typedef struct muster_ranks muster_ranks;
MUSTER_C_API size_t muster_ranks_count(const muster_ranks* ranks);
MUSTER_C_API int muster_ranks_at(const muster_ranks* ranks, size_t index);  ///< -1: no such index
MUSTER_C_API void muster_ranks_free(muster_ranks* ranks);

/// unconfirmed  at the last rank out: the ranks that did not confirm; may be NULL
MUSTER_C_CHECKED muster_error* muster_group_barrier(muster_group* group, int64_t timeout,
                                                    muster_ranks** unconfirmed);
/// object  that of the root; ignored at other ranks
MUSTER_C_CHECKED muster_error* muster_group_broadcast(muster_group* group, uint32_t codec,
                                                      muster_view object, int root, int64_t timeout,
                                                      muster_bytes** received);
/// objects  one element per rank
MUSTER_C_CHECKED muster_error* muster_group_all_gather(muster_group* group, uint32_t codec,
                                                       muster_view object, int64_t timeout,
                                                       muster_list** objects);
/// objects  at the root one element per rank; at other ranks an empty list
MUSTER_C_CHECKED muster_error* muster_group_gather(muster_group* group, uint32_t codec,
                                                   muster_view object, int root, int64_t timeout,
                                                   muster_list** objects);
/// objects, count  at the root one element per rank; ignored at other ranks
MUSTER_C_CHECKED muster_error* muster_group_scatter(muster_group* group, uint32_t codec,
                                                    const muster_view* objects, size_t count,
                                                    int root, int64_t timeout,
                                                    muster_bytes** received);

typedef void (*muster_on_ranks)(void* user, muster_error* error, muster_ranks* ranks);
MUSTER_C_API void muster_group_barrier_async(muster_group* group, int64_t timeout,
                                             muster_on_ranks done, void* user, muster_call** call);
MUSTER_C_API void muster_group_broadcast_async(muster_group* group, uint32_t codec,
                                               muster_view object, int root, int64_t timeout,
                                               muster_on_bytes done, void* user,
                                               muster_call** call);
MUSTER_C_API void muster_group_all_gather_async(muster_group* group, uint32_t codec,
                                                muster_view object, int64_t timeout,
                                                muster_on_list done, void* user,
                                                muster_call** call);
MUSTER_C_API void muster_group_gather_async(muster_group* group, uint32_t codec, muster_view object,
                                            int root, int64_t timeout, muster_on_list done,
                                            void* user, muster_call** call);
MUSTER_C_API void muster_group_scatter_async(muster_group* group, uint32_t codec,
                                             const muster_view* objects, size_t count, int root,
                                             int64_t timeout, muster_on_bytes done, void* user,
                                             muster_call** call);

// When ranks are lost.

/// Ends what the other ranks of this group wait for.
MUSTER_C_CHECKED muster_error* muster_group_interrupt(muster_group* group, const char* reason,
                                                      int64_t timeout);
MUSTER_C_API void muster_group_interrupt_async(muster_group* group, const char* reason,
                                               int64_t timeout, muster_on_done done, void* user,
                                               muster_call** call);

/// Calls `handler` when something ends this epoch or this handle, or a rank interrupts the group,
/// as StatelessProcessGroup::watch. It runs on the I/O thread, must not block, and owns its error.
///
/// returns  to be freed: when that has returned, the handler does not run any more. NULL if memory
///          is out, or an argument is NULL
MUSTER_C_API muster_watch* muster_group_watch(muster_group* group, muster_on_done handler,
                                              void* user);
MUSTER_C_API void muster_watch_free(muster_watch* watch);

typedef struct muster_regroup_options {
  size_t size;
  int32_t new_size;
  int32_t min_size;
  bool everyone;
} muster_regroup_options;

/// next  the handle of the next epoch; the old one is over, and still to be freed
MUSTER_C_CHECKED muster_error* muster_group_regroup(muster_group* group,
                                                    const muster_regroup_options* options,
                                                    int64_t timeout, muster_group** next);
MUSTER_C_API void muster_group_regroup_async(muster_group* group,
                                             const muster_regroup_options* options, int64_t timeout,
                                             muster_on_group done, void* user, muster_call** call);

/// What became of a collective that had got no answer.
typedef struct muster_recovered muster_recovered;
/// Number of the collective; 0: none was in doubt.
MUSTER_C_API uint64_t muster_recovered_round(const muster_recovered* outcome);
/// Whether it had reached the server. If not: call it again.
MUSTER_C_API bool muster_recovered_called(const muster_recovered* outcome);
/// Why it has failed; NULL: it has not. Belongs to the outcome.
MUSTER_C_API const muster_error* muster_recovered_error(const muster_recovered* outcome);
/// What it has given, by rank. Belongs to the outcome.
MUSTER_C_API const muster_list* muster_recovered_values(const muster_recovered* outcome);
MUSTER_C_API void muster_recovered_free(muster_recovered* outcome);

MUSTER_C_CHECKED muster_error* muster_group_recover(muster_group* group, int64_t timeout,
                                                    muster_recovered** outcome);
typedef void (*muster_on_recovered)(void* user, muster_error* error, muster_recovered* outcome);
MUSTER_C_API void muster_group_recover_async(muster_group* group, int64_t timeout,
                                             muster_on_recovered done, void* user,
                                             muster_call** call);

#ifdef __cplusplus
}
#endif
