#pragma once

#include <map>
#include <string>
#include <vector>

#include "nccl/doubles/loaded.h"
#include "support/process.h"

// A rank in a process of its own: the test's program itself, told what to do by its arguments. It
// prints a line for each step; the kernel kills it when the test ends.

namespace muster::test {

std::string hex_of(const NcclDouble::UniqueId& id);

/// For `main`: does what rank_process wants if this is such a child, and gives its exit code; -1
/// if it is none.
int run_as_rank(int argc, char** argv);

/// Steps, and what they print:
///
///   mint          an id, in hexadecimal; it is that of the steps that follow
///   init          the result of ncclCommInitRankConfig, without blocking
///   settle        the asynchronous error, once it is another than 7
///   reduce        the sum of rank + 1 of all ranks, an int32, on a stream of its own
///   start         nothing; the same all-reduce, which is launched and not waited for
///   settle_error  the asynchronous error, once it is one
///   synchronize   the result for the stream
///   finalize      the asynchronous error after it
///   destroy, abort  their results
///   hold          "held"; then it waits for SIGUSR1
///   heir          leaves a child that is exec'd; nothing
///   unknown       asks for a handle that there is not
struct RankProcess {
  int rank = 0;
  int rank_count = 1;
  std::string id = "-";  ///< hexadecimal
  std::vector<std::string> steps;
  std::map<std::string, std::string> environment;  ///< beside a host id of its own
};
Process::Options rank_process(const RankProcess& wanted);

}  // namespace muster::test
