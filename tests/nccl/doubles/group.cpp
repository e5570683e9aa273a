#include "nccl/doubles/group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "nccl/doubles/bootstrap.h"
#include "nccl/doubles/counts.h"
#include "nccl/doubles/cuda_access.h"
#include "nccl/doubles/faults.h"

// A thread's group, as NCCL has it (2.28.9: src/group.cc, and ncclEnqueueCheck in src/enqueue.cc).
// Calls between its first start and its last end wait in lists of the thread. One that is refused
// drops them all: the end gives its error, and each communicator that takes part and is not
// blocking has that for its asynchronous error, for good. Else a run does what waits: the jobs,
// each in a thread of its own; then the connections that are missing; then the operations go into
// their streams (those of one communicator and stream as one piece: its collectives in their order,
// then its sends and receives at once). The run is one thread of its own, and all its communicators
// are in progress until it is over, unless they are blocking: then it is the caller's.

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

void run(const Launch& launch, std::uint64_t ticket) {
  Communicator& communicator = *launch.communicator;
  communicator.take_turn(ticket, [&] {
    for (const Operation& collective : launch.collectives) {
      if (communicator.stop_operations.is_set()) return;
      run_collective(communicator, collective);
    }
    if (launch.point_to_point.empty() || communicator.stop_operations.is_set()) return;
    run_point_to_point(communicator, launch.point_to_point);
  });
}

/// In the stream's thread; the launch is freed here.
void run_launch(void* argument) {
  const std::unique_ptr<Launch> launch(static_cast<Launch*>(argument));
  run(*launch, launch->ticket);
}

/// The same of one that a graph has, which may run it again.
void run_captured_launch(void* argument) {
  const Launch& launch = *static_cast<const Launch*>(argument);
  std::uint64_t own_ticket = 0;
  launch.communicator->issue([&](std::uint64_t ticket) {
    own_ticket = ticket;
    return static_cast<int>(success);
  });
  run(launch, own_ticket);
}

/// Whoever has the graph may run it until the process ends.
void keep_forever(std::unique_ptr<Launch> launch) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<Launch>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(launch));
}

int capture(std::unique_ptr<Launch> launch) {
  const OwnDevice& own = launch->communicator->place.own_device;
  if (launch_host_function(own, launch->stream, run_captured_launch, launch.get()) != 0) {
    set_last_error("Cuda failure 'invalid resource handle'");
    return unhandled_cuda_error;
  }
  keep_forever(std::move(launch));
  return success;
}

int enqueue(Launch launch) {
  auto owned = std::make_unique<Launch>(std::move(launch));
  if (is_captured(owned->stream)) return capture(std::move(owned));
  const CommunicatorPointer communicator = owned->communicator;
  return communicator->issue([&](std::uint64_t ticket) -> int {
    owned->ticket = ticket;
    if (launch_host_function(communicator->place.own_device, owned->stream, run_launch,
                             owned.get()) != 0) {
      set_last_error("Cuda failure 'invalid resource handle'");
      return unhandled_cuda_error;
    }
    owned.release();
    return success;
  });
}

/// All at once, each in a thread of its own; gives the first error, and then ends the others, too
/// (group.cc: asyncJobLaunch).
int do_at_once(const std::vector<Job>& jobs) {
  if (jobs.size() == 1) return jobs.front().work();
  std::atomic<int> result{success};
  std::vector<std::thread> threads;
  for (const Job& job : jobs) {
    threads.emplace_back([&] {
      const Counted counted(counts().threads);
      const int own = job.work();
      int none = success;
      if (own == success || !result.compare_exchange_strong(none, own)) return;
      for (const Job& other : jobs) other.communicator->stop_all();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

/// What there is to do at the end of a group.
class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(std::vector<Job> jobs, std::vector<Launch> launches)
      : jobs_(std::move(jobs)), launches_(std::move(launches)) {
    for (const Job& job : jobs_) add(job.communicator);
    for (const Launch& launch : launches_) add(launch.communicator);
  }

  bool empty() const { return communicators_.empty(); }

  /// Instead of all else (group.cc: groupCleanup).
  void drop(int error) const {
    for (const CommunicatorPointer& each : communicators_) {
      if (!each->place.is_blocking) each->set_result(error);
    }
  }

  void begin() {
    for (const CommunicatorPointer& each : communicators_) {
      each->begin_work([self = shared_from_this()] { self->abort(); });
    }
  }

  int go() {
    int result = do_at_once(jobs_and_lanes());
    for (Launch* const launch : by_magic()) {
      if (result == success) result = connect_data(*launch->communicator);
    }
    for (Launch& launch : launches_) {
      if (result != success) break;
      if (launch.later.count() > 0) launch.communicator->stop.wait_for(launch.later);
      result = launch.communicator->stop.is_set() ? static_cast<int>(internal_error)
                                                  : enqueue(std::move(launch));
    }
    for (const CommunicatorPointer& each : communicators_) each->end_work(result);
    return result;
  }

 private:
  void add(const CommunicatorPointer& communicator) {
    const auto known = std::find(communicators_.begin(), communicators_.end(), communicator);
    if (known == communicators_.end()) communicators_.push_back(communicator);
  }

  /// The abort of one communicator ends the run for all (init.cc: ncclCommEnsureReady; group.cc:
  /// ncclGroupJobAbort).
  void abort() const {
    for (const CommunicatorPointer& each : communicators_) each->stop_all();
  }

  std::vector<Job> jobs_and_lanes() {
    std::vector<Job> all = std::move(jobs_);
    for (Launch& launch : launches_) {
      if (launch.point_to_point.empty()) continue;
      all.push_back({launch.communicator, [&launch] {
                       return connect_lanes(*launch.communicator, launch.point_to_point);
                     }});
    }
    if (all.empty()) all.push_back({nullptr, [] { return success; }});
    return all;
  }

  /// Those with collectives, in an order that all ranks share (group.h: ncclGroupCommJoin).
  std::vector<Launch*> by_magic() {
    std::vector<Launch*> sorted;
    for (Launch& launch : launches_) {
      if (!launch.collectives.empty()) sorted.push_back(&launch);
    }
    std::sort(sorted.begin(), sorted.end(), [](const Launch* one, const Launch* other) {
      return one->communicator->place.magic < other->communicator->place.magic;
    });
    return sorted;
  }

  std::vector<Job> jobs_;
  std::vector<Launch> launches_;
  std::vector<CommunicatorPointer> communicators_;
};

void start_thread_of(const std::shared_ptr<Run>& run) {
  run->begin();
  ++counts().threads;
  std::thread([run] {
    run->go();
    --counts().threads;
  }).detach();
}

enum class Mode { unset, blocking, nonblocking };

Mode mode_of(const Communicator& communicator) {
  return communicator.place.is_blocking ? Mode::blocking : Mode::nonblocking;
}

struct Group {
  int depth = 0;
  int error = success;
  Mode mode = Mode::unset;
  std::vector<Job> jobs;
  std::vector<Launch> launches;
};

Group& own_group() {
  thread_local Group group;
  return group;
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

/// As group.cc has it in ncclAsyncLaunch.
int append(const Job& job) {
  Group& group = own_group();
  if (group.mode == Mode::unset) group.mode = mode_of(*job.communicator);
  if (group.mode != mode_of(*job.communicator)) {
    set_last_error("Blocking and nonblocking communicators are not allowed in the same group.");
    return invalid_argument;
  }
  group.jobs.push_back(job);
  return success;
}

/// As enqueue.cc has it in ncclEnqueueCheck and taskAppend.
int append(const CommunicatorPointer& communicator, void* stream, const Operation& operation) {
  if (const int result = communicator->refusal()) return result;
  if (const int result = refusal_of_arguments(*communicator, operation)) return result;
  const CallFault fault = fault_of_call(Phase::collective, communicator->place.rank);
  if (fault.result != 0) return fault.result;
  const bool is_collective = !is_point_to_point(operation);
  if (is_collective && operation.count == 0) return success;
  Operation taken = operation;
  if (const int result = take_red_op(*communicator, taken)) return result;
  if (is_collective && communicator->place.rank_count == 1 && fault.later.count() < 0) {
    Launch alone;
    alone.communicator = communicator;
    alone.stream = stream;
    alone.collectives.push_back(taken);
    return enqueue(std::move(alone));  // whatever group there is
  }
  Group& group = own_group();
  group.mode = mode_of(*communicator);  // the last one's, and nobody looks at the others
  Launch& launch = launch_of(group, communicator, stream);
  launch.later = std::max(launch.later, fault.later);
  (is_collective ? launch.collectives : launch.point_to_point).push_back(taken);
  return success;
}

/// What a call gives after it has ended its own group within that of its caller. NCCL looks at the
/// asynchronous error once more; nothing can have changed it so soon.
int outcome_of_call(int result) {
  const int ended = end_group();
  return ended != success ? ended : result;
}

}  // namespace

void start_group() { ++own_group().depth; }

int end_group() {
  Group& group = own_group();
  if (group.depth == 0) {
    set_last_error("ncclGroupEnd: not in a group call.");
    return invalid_usage;
  }
  if (--group.depth > 0) return success;
  const Group ended = std::exchange(group, {});
  const auto run = std::make_shared<Run>(ended.jobs, ended.launches);
  if (ended.error != success) {
    run->drop(ended.error);
    return ended.error;
  }
  if (run->empty()) return success;
  if (ended.mode == Mode::nonblocking) {
    start_thread_of(run);
    return in_progress;
  }
  run->begin();
  return run->go();
}

int refuse_in_group(int result) {
  if (own_group().depth > 0 && result != success) own_group().error = result;
  return result;
}

int do_job(const Job& job) {
  start_group();
  const int result = refuse_in_group(append(job));
  if (result != success && !job.communicator->place.is_blocking) {
    job.communicator->set_result(result);
  }
  return outcome_of_call(result);
}

void begin_alone(const Job& job) {
  start_thread_of(std::make_shared<Run>(std::vector<Job>{job}, std::vector<Launch>{}));
}

int submit(const void* handle, void* stream, const Operation& operation) {
  const CommunicatorPointer communicator = find_communicator(handle);
  if (communicator == nullptr) return refuse_in_group(invalid_argument);
  if (const int result = communicator->refusal_of_revoked()) return refuse_in_group(result);
  start_group();
  const int result = refuse_in_group(append(communicator, stream, operation));
  if (result != success && !communicator->place.is_blocking) communicator->set_result(result);
  return outcome_of_call(result);
}

}  // namespace nccl_double
