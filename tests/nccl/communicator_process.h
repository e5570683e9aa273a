#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/process.h"

// A rank that makes communicators, in a process of its own: the test's program itself, told what to
// do by its arguments. It prints a line for each step; the kernel kills it when the test ends.

namespace muster::test {

/// For `main`: does what `communicator_process` or `server_process` wants if this is such a child,
/// and gives its exit code; -1 if it is none.
int run_as_communicator(int argc, char** argv);

/// Steps, some with an argument behind a colon, all with an outcome:
///
///   join[:NAME]       joins the group, or another one beside it, which is used from then on
///   rank:N, size:N    of the groups that are joined from then on
///   warm_up, blocking, nonblocking, ctas:N, nccl:PATH, cuda:PATH
///                     set what the next `create` is given
///   at_end:WHAT       so that the next warm-up ends with `stop`, `kill`, `hang` or `hold`
///   heir              so that ids are made with a child that inherits their sockets
///   create[:MS]       makes a communicator, with this timeout
///   reduce            the sum of rank + 1 of all ranks
///   scaled            the scaled sum of rank + 1 of all ranks, with rank + 1 for the factor
///   start             as reduce, without waiting for the stream; `finish` does
///   finish            until the stream is idle
///   insist            the same again and again, until a call fails, and why
///   over              until the communicator is over, and why
///   error             why it is over; success if it is not
///   swap              goes on with the communicator that was put aside by the last one, if any
///   put:N, fold       N as this rank's number; the sum of all ranks' numbers, which is this rank's
///                     from then on
///   cycles:N          so often a communicator is made, used and closed; how many KiB of the
///                     device's memory that has cost
///   regroup[:MIN]     the group's next epoch; with MIN ranks after two seconds, else with all
///   barrier, attach, close, abort
///   resume, reopen    once the server answers again, or has been started anew
///   attempts          how many have failed inside NCCL
///   hold              "hold", and once more when it has got SIGUSR1
///   leave, stay, stop, kill, exit
struct CommunicatorProcess {
  std::string server;
  std::string group;
  int rank = 0;
  int world_size = 1;
  std::vector<std::string> steps;
  std::map<std::string, std::string> environment;  ///< beside a host id of its own
};
Process::Options communicator_process(const CommunicatorProcess& wanted);

/// A server on this port of loopback; 0: any. It prints its address.
Process::Options server_process(int port = 0);

/// The line that a step has printed.
struct Said {
  std::string step;
  std::string code;   ///< of its error; "ok": there was none
  std::string ranks;  ///< such as "0,2-3"
  std::uint64_t actual = 0;
  std::chrono::milliseconds elapsed{0};
  std::string text;  ///< of the error, or what the step gave
};

/// The next line of a rank; nothing when it has ended, or says nothing for long.
std::optional<Said> said_by(Process& process);

}  // namespace muster::test
