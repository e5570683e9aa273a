#include "nccl/doubles/group.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "nccl/doubles/cuda_access.h"
#include "nccl/doubles/faults.h"

// A thread's group: calls between its first start and its last end wait in lists of the thread.
// The end begins all jobs, puts the operations into their streams (those of one communicator and
// stream as one piece: its collectives in their order, then its sends and receives at once), and
// waits for the jobs at last.

namespace nccl_double {
namespace {

/// Operations of one communicator for one stream.
struct Launch {
  CommunicatorPointer communicator;
  void* stream = nullptr;
  std::vector<Operation> collectives;
  std::vector<Operation> point_to_point;
  std::chrono::milliseconds later{-1};
  std::uint64_t ticket = 0;
};

struct Group {
  int depth = 0;
  std::vector<Job> jobs;
  std::vector<Launch> launches;
};

Group& own_group() {
  thread_local Group group;
  return group;
}

/// In the stream's thread; the launch is freed here.
void run_launch(void* argument) {
  const std::unique_ptr<Launch> launch(static_cast<Launch*>(argument));
  Communicator& communicator = *launch->communicator;
  communicator.take_turn(launch->ticket, [&] {
    for (const Operation& collective : launch->collectives) {
      if (communicator.stop_operations.is_set()) return;
      run_collective(communicator, collective);
    }
    if (launch->point_to_point.empty() || communicator.stop_operations.is_set()) return;
    run_point_to_point(communicator, launch->point_to_point);
  });
}

int enqueue(Launch launch) {
  auto owned = std::make_unique<Launch>(std::move(launch));
  const CommunicatorPointer communicator = owned->communicator;
  return communicator->issue([&](std::uint64_t ticket) -> int {
    owned->ticket = ticket;
    if (launch_host_function(owned->stream, run_launch, owned.get()) != 0) {
      return unhandled_cuda_error;
    }
    owned.release();
    return success;
  });
}

/// What the faults want later goes on in the background, as NCCL does when it has to connect first.
int launch_now_or_later(Launch launch) {
  if (launch.later.count() < 0) return enqueue(std::move(launch));
  Communicator* const communicator = launch.communicator.get();
  communicator->go_on([launch = std::move(launch)] {
    Communicator& own = *launch.communicator;
    own.stop.wait_for(launch.later);
    if (!own.stop.is_set()) own.set_result(enqueue(launch));
  });
  return in_progress;
}

/// The first error, else 7 if there is one.
int worse(int one, int other) {
  if (one == success || one == in_progress) return other == success ? one : other;
  return one;
}

int flush(Group& group) {
  int result = success;
  const std::vector<Job> jobs = std::exchange(group.jobs, {});
  for (const Job& job : jobs) result = worse(result, job.begin());
  for (Launch& launch : std::exchange(group.launches, {})) {
    result = worse(result, launch_now_or_later(std::move(launch)));
  }
  for (const Job& job : jobs) result = worse(result, job.settle());
  return result;
}

Launch& launch_of(Group& group, const CommunicatorPointer& communicator, void* stream) {
  for (Launch& launch : group.launches) {
    if (launch.communicator == communicator && launch.stream == stream) return launch;
  }
  Launch launch;
  launch.communicator = communicator;
  launch.stream = stream;
  return group.launches.emplace_back(std::move(launch));
}

}  // namespace

void start_group() { ++own_group().depth; }

int end_group() {
  Group& group = own_group();
  if (group.depth == 0) return invalid_usage;
  return --group.depth > 0 ? static_cast<int>(success) : flush(group);
}

int do_job(const Job& job) {
  start_group();
  own_group().jobs.push_back(job);
  return end_group();
}

int submit(const void* handle, void* stream, const Operation& operation) {
  const CommunicatorPointer communicator = find_communicator(handle);
  if (communicator == nullptr) return invalid_argument;
  if (const int result = communicator->refusal_of_operations()) return result;
  if (const int result = refusal_of_arguments(*communicator, operation)) return result;
  const CallFault fault = fault_of_call(Phase::collective, communicator->place.rank);
  if (fault.result != 0) return fault.result;
  start_group();
  Launch& launch = launch_of(own_group(), communicator, stream);
  launch.later = std::max(launch.later, fault.later);
  (is_point_to_point(operation) ? launch.point_to_point : launch.collectives).push_back(operation);
  return end_group();
}

}  // namespace nccl_double
