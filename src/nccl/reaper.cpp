#include "nccl/reaper.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "communicator/patience.h"
#include "nccl/functions.h"

namespace muster::nccl {
namespace {

using Clock = std::chrono::steady_clock;

/// One loss may end several communicators of a device, one right after the other.
constexpr std::chrono::milliseconds gathers_for{2};
/// So long a call that looks at its gate may take to leave.
constexpr std::chrono::milliseconds leaves_within{50};

std::atomic<int> given_up{0};

Duration longest_patience(const std::vector<Doomed>& batch) {
  Duration longest{0};
  for (const Doomed& doomed : batch) longest = std::max(longest, doomed.patience);
  return longest;
}

/// returns  whether NCCL says that it did
bool abort_handles(const std::vector<Doomed>& batch) {
  const NcclFunctions& nccl = batch.front().nccl;
  const Device::Current current(*batch.front().device);
  bool is_done = true;
  const auto see = [&is_done](int result) {
    is_done = is_done && (result == success || result == in_progress);
  };
  if (batch.size() > 1) see(nccl.group_start());
  for (const Doomed& doomed : batch) see(doomed.nccl.comm_abort(doomed.handle));
  if (batch.size() > 1) see(nccl.group_end());
  return is_done;
}

bool wait_empty(const Doomed& doomed, Clock::time_point until) {
  const auto left = std::max(until - Clock::now(), Clock::duration(0));
  return doomed.gate->wait_empty(std::chrono::duration_cast<Duration>(left));
}

/// Takes out those in which somebody is inside still when the time has come.
std::vector<Doomed> take_occupied(std::vector<Doomed>& batch, Clock::time_point until) {
  const auto first =
      std::stable_partition(batch.begin(), batch.end(),
                            [until](const Doomed& doomed) { return wait_empty(doomed, until); });
  std::vector<Doomed> occupied(std::make_move_iterator(first),
                               std::make_move_iterator(batch.end()));
  batch.erase(first, batch.end());
  return occupied;
}

}  // namespace

int Reaper::given_up_count() { return given_up; }
void Reaper::count_given_up() { ++given_up; }

void Reaper::submit(std::vector<Doomed> doomed) {
  const std::lock_guard lock(mutex_);
  for (Doomed& each : doomed) waiting_[each.device->ordinal()].push_back(std::move(each));
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const auto here = each++;
    const int device = here->first;
    if (working_.count(device) != 0) continue;
    if (communicator::start_thread("muster-reaper",
                                   [self = shared_from_this(), device] { self->work(device); })) {
      working_.insert(device);
      continue;
    }
    given_up += static_cast<int>(here->second.size());
    waiting_.erase(here);
  }
}

/// What comes while it aborts gets a thread of its own: the abort may hang because of just that.
void Reaper::work(int device) {
  std::this_thread::sleep_for(gathers_for);
  std::vector<Doomed> batch;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(device);
    batch = std::move(found->second);
    waiting_.erase(found);
    working_.erase(device);
  }
  auto occupied = take_occupied(batch, Clock::now() + leaves_within);
  if (occupied.empty()) return abort(std::move(batch));
  if (!batch.empty() && !communicator::start_thread("muster-reaper", [batch] { abort(batch); })) {
    abort(std::move(batch));
  }
  // Who is inside looks at the gate again and again; who hangs in NCCL itself does not, and only
  // the abort can bring it back.
  const auto until = Clock::now() + longest_patience(occupied);
  for (const Doomed& doomed : occupied) wait_empty(doomed, until);
  abort(std::move(occupied));
}

void Reaper::abort(std::vector<Doomed> batch) {
  const auto count = static_cast<int>(batch.size());
  const Duration patience = longest_patience(batch);
  const auto done = communicator::with_patience<bool>(
      "ncclCommAbort", patience,
      [batch = std::move(batch)]() -> Result<bool> { return abort_handles(batch); },
      [](const Result<bool>&) {});
  if (!done || !*done) given_up += count;
}

}  // namespace muster::nccl
