#pragma once

#include "nccl/gpu/rank.h"

// What the ranks of the checks do; `plan.py` says what must hold of each, and runs them.

namespace muster::test::gpu {

// 1: which device NCCL uses
void device_of_thread(Rank& rank);
void second_device(Rank& rank);
// 2: calls, in number
void many_calls(Rank& rank);
// 3: calls that are refused, and groups that are dropped
void refusal_bare(Rank& rank);
void refusal(Rank& rank);
void throw_in_group(Rank& rank);
// 4, 5: aborts under work that does not end
void abort_frees_stream(Rank& rank);
void abort_together(Rank& rank);
// 6: a peer that is killed
void killed_peer(Rank& rank);
void killed_peer_of_nccl(Rank& rank);
// 7: first collectives in a ring
void ring(Rank& rank);
// 8: the end in order, where something is in the way
void close_with_work(Rank& rank);
void close_unmatched(Rank& rank);
void close_with_graph(Rank& rank);
void close_after_regroup(Rank& rank);
// 9: what communicators cost, and what failed attempts leave
void cycles(Rank& rank);
void cycles_bare(Rank& rank);
void many_alive(Rank& rank);
void failed_attempts(Rank& rank);
// 10: graphs
void capture(Rank& rank);
// how fast
void bandwidth(Rank& rank);

}  // namespace muster::test::gpu
