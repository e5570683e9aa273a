#pragma once

#include <functional>

#include "nccl/doubles/operations.h"

namespace nccl_double {

/// The calling thread's group, and what waits for its end.
void start_group();
/// 5 without a start; else what came of all that waited for the end, if this is the last.
int end_group();

/// Within a group now or at its end: `begin` gives a result at once, `settle` waits for what comes
/// of it.
struct Job {
  std::function<int()> begin;
  std::function<int()> settle;
};
int do_job(const Job& job);

/// Into the stream, now or at the group's end.
int submit(const void* handle, void* stream, const Operation& operation);

}  // namespace nccl_double
