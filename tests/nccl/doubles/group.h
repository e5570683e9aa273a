#pragma once

#include <functional>

#include "nccl/doubles/operations.h"

namespace nccl_double {

/// The calling thread's group, and what waits for its end.
void start_group();
/// 5 without a start; else, if this is the last, what came of all that waited for the end.
int end_group();
/// A call that is refused within a group: its end drops everything, and gives this error.
int refuse_in_group(int result);

/// Something of a communicator that takes time, and what comes of it. It ends soon after the
/// communicator's `stop`.
struct Job {
  CommunicatorPointer communicator;
  std::function<int()> work;
};
/// Within a group now or at its end.
int do_job(const Job& job);
/// Goes on in a thread of its own, whatever group there is.
void begin_alone(const Job& job);

/// Into the stream, now or at the group's end.
int submit(const void* handle, void* stream, const Operation& operation);

}  // namespace nccl_double
