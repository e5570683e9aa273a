#pragma once

// A libnccl.so.2 of the tests' own. Ids, the root, check-in and ring are made as NCCL makes them,
// of real sockets on loopback; collectives move host memory over TCP, in the order of the streams
// of the libcuda.so.1 beside this. Where NCCL hangs without a word, so does this. Handles are never
// used again, and one that it never gave ends the process, as it may with NCCL. Its environment,
// beside what NCCL reads (NCCL_COMM_ID, NCCL_HOSTID, NCCL_SOCKET_IFNAME, ..._RETRY_CNT,
// ..._RETRY_SLEEP_MSEC, NCCL_CHECK_POINTERS):
//
//   NCCL_DOUBLE_VERSION  what ncclGetVersion says (22809)
//   NCCL_DOUBLE_FAULTS   as for nccl_double_fault, with ";" between them
//   NCCL_DOUBLE_LEAKS    0: what NCCL leaks of an initialization that came to nothing is freed

extern "C" {

/// From now on ncclGetUniqueId gives this result; 0: it makes ids.
void nccl_double_refuse(int result);

/// Called before each id is made; null: nothing is.
void nccl_double_before(void (*action)());

/// How many ids are still waited at.
int nccl_double_waiting();

/// Adds a fault, `PHASE:KIND[=NUMBER][@RANK][+SKIPPED][*TIMES]`: at that phase, of communicators
/// where this process is RANK, the first SKIPPED times not, and TIMES times at most. Gives 0, or -1
/// where there is no such phase or kind. Phases, in a thread of the double's own where one has it:
///
///   get_unique_id, abort, destroy   the call
///   init                            the call; what goes on in the background, before check-in
///   check_in, ring, connect, ready  between the magic and the message to the root; before the
///                                   ring is connected; after all have met; before it is ready
///   collective                      the call (also of p2p); the work on the stream
///   finalize                        the call; what goes on in the background
///   red_op                          the call of ncclRedOpCreatePreMulSum
///
/// Kinds, each with the moment at which it comes where a phase has two:
///
///   block=MS    the call does not return for that time, whatever happens meanwhile
///   result=N    the call gives N and does nothing; in the phases of the background, the
///               communicator's asynchronous error becomes N
///   hang        the call does not return until the faults are cleared
///   delay=MS    the background takes that much longer, but for an abort
///   forever     the background goes no further until an abort
///   async=N     of a collective: its work sticks, and the asynchronous error becomes N
///   later=MS    of a collective: the call gives 7, and is done after that time
///   stop, exit, kill
///               of the process, where the call begins, and, written stop_inside, exit_inside or
///               kill_inside, in the background; one that is stopped goes on with SIGCONT
int nccl_double_fault(const char* text);
/// Lets go what hangs, too.
void nccl_double_clear_faults();

void nccl_double_set_version(int version);
/// 0: what NCCL leaks is freed.
void nccl_double_set_leaks(int number);

/// How many there are of: communicators (neither aborted nor destroyed), threads, descriptors, ids
/// (waited at), collectives (finished), stuck (of collectives, now), red_ops (made and not
/// destroyed, also of communicators that are gone), made_red_ops (so far), leaked_threads,
/// leaked_descriptors (both are counted in threads and descriptors, too). -1: no such kind.
long nccl_double_count(const char* kind);

/// Why a collective or p2p of this process got stuck last: what differs; "" while none has.
const char* nccl_double_last_mismatch();
}
