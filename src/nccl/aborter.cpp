#include "nccl/aborter.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "communicator/timed_call.h"
#include "nccl/functions.h"

namespace muster::nccl_internal {
namespace {

using Clock = std::chrono::steady_clock;

/// One loss may end several communicators of a device, one right after the other.
constexpr std::chrono::milliseconds collects_for{2};
/// How long a call that polls its gate may take to return.
constexpr std::chrono::milliseconds return_time{50};

std::atomic<int> given_up{0};

Duration longest_timeout(const std::vector<AbortJob>& batch) {
  Duration longest{0};
  for (const AbortJob& job : batch) longest = std::max(longest, job.timeout);
  return longest;
}

/// returns  whether NCCL says that it did
bool abort_handles(const std::vector<AbortJob>& batch) {
  const nccl::Functions& nccl = batch.front().nccl;
  const Device::Current current(*batch.front().device);
  bool is_done = true;
  const auto see = [&is_done](int result) {
    is_done = is_done && (result == success || result == in_progress);
  };
  if (batch.size() > 1) see(nccl.group_start());
  for (const AbortJob& job : batch) see(job.nccl.comm_abort(job.handle));
  if (batch.size() > 1) see(nccl.group_end());
  return is_done;
}

bool wait_empty(const AbortJob& job, Clock::time_point until) {
  const auto left = std::max(until - Clock::now(), Clock::duration(0));
  return job.gate->wait_empty(std::chrono::duration_cast<Duration>(left));
}

/// Until all have left, the time has come, or somebody is inside who leaves only for the abort.
void wait_for_leave(const AbortJob& job, Clock::time_point until) {
  constexpr std::chrono::milliseconds between_looks{5};
  while (*job.inside == 0 && Clock::now() < until) {
    if (job.gate->wait_empty(between_looks)) return;
  }
}

/// Removes those in which a call is still in progress when the time has come, and returns them.
std::vector<AbortJob> take_occupied(std::vector<AbortJob>& batch, Clock::time_point until) {
  const auto first = std::stable_partition(
      batch.begin(), batch.end(), [until](const AbortJob& job) { return wait_empty(job, until); });
  std::vector<AbortJob> occupied(std::make_move_iterator(first),
                                 std::make_move_iterator(batch.end()));
  batch.erase(first, batch.end());
  return occupied;
}

}  // namespace

int Aborter::given_up_count() { return given_up; }
void Aborter::count_given_up() { ++given_up; }

void Aborter::submit(std::vector<AbortJob> jobs) {
  const std::lock_guard lock(mutex_);
  for (AbortJob& each : jobs) waiting_[each.device->ordinal()].push_back(std::move(each));
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const auto here = each++;
    const int device = here->first;
    if (working_.count(device) != 0) continue;
    if (communicator::start_thread("muster-abort",
                                   [self = shared_from_this(), device] { self->work(device); })) {
      working_.insert(device);
      continue;
    }
    given_up += static_cast<int>(here->second.size());
    waiting_.erase(here);
  }
}

/// Jobs that come while this aborts get another thread: the abort may hang because of them.
void Aborter::work(int device) {
  std::this_thread::sleep_for(collects_for);
  std::vector<AbortJob> batch;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(device);
    batch = std::move(found->second);
    waiting_.erase(found);
    working_.erase(device);
  }
  auto occupied = take_occupied(batch, Clock::now() + return_time);
  if (occupied.empty()) return abort(std::move(batch));
  if (!batch.empty() && !communicator::start_thread("muster-abort", [batch] { abort(batch); })) {
    abort(std::move(batch));
  }
  // A call that waits polls the gate. One that hangs inside NCCL does not; only the abort ends it.
  const auto until = Clock::now() + longest_timeout(occupied);
  for (const AbortJob& job : occupied) wait_for_leave(job, until);
  abort(std::move(occupied));
}

void Aborter::abort(std::vector<AbortJob> batch) {
  const auto count = static_cast<int>(batch.size());
  const Duration timeout = longest_timeout(batch);
  const auto done = communicator::call_with_timeout<bool>(
      "ncclCommAbort", timeout,
      [batch = std::move(batch)]() -> Result<bool> { return abort_handles(batch); },
      [](const Result<bool>&) {});
  if (!done.value_or(false)) given_up += count;
}

}  // namespace muster::nccl_internal
