#include "nccl/reaper.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "communicator/patience.h"

namespace muster::nccl {
namespace {

/// One loss may end several communicators of a device, one right after the other.
constexpr std::chrono::milliseconds gathers_for{2};

std::atomic<int> given_up{0};

Duration longest_patience(const std::vector<Doomed>& batch) {
  Duration longest{0};
  for (const Doomed& doomed : batch) longest = std::max(longest, doomed.patience);
  return longest;
}

void abort_handles(const std::vector<Doomed>& batch) {
  const NcclFunctions& nccl = batch.front().nccl;
  const Device::Current current(*batch.front().device);
  if (batch.size() > 1) nccl.group_start();
  for (const Doomed& doomed : batch) doomed.nccl.comm_abort(doomed.handle);
  if (batch.size() > 1) nccl.group_end();
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

void Reaper::work(int device) {
  for (;;) {
    std::this_thread::sleep_for(gathers_for);
    std::vector<Doomed> batch;
    {
      const std::lock_guard lock(mutex_);
      const auto found = waiting_.find(device);
      if (found == waiting_.end()) {
        working_.erase(device);
        return;
      }
      batch = std::move(found->second);
      waiting_.erase(found);
    }
    abort(std::move(batch));
  }
}

/// Who is inside looks at the gate again and again; who hangs in NCCL itself does not, and only the
/// abort can bring it back.
void Reaper::abort(std::vector<Doomed> batch) {
  const auto until = std::chrono::steady_clock::now() + longest_patience(batch);
  for (const Doomed& doomed : batch) {
    const auto left = until - std::chrono::steady_clock::now();
    doomed.gate->wait_empty(std::max(Duration{0}, std::chrono::duration_cast<Duration>(left)));
  }
  const auto count = static_cast<int>(batch.size());
  const Duration patience = longest_patience(batch);
  const auto done = communicator::with_patience<bool>(
      "ncclCommAbort", patience,
      [batch = std::move(batch)]() -> Result<bool> {
        abort_handles(batch);
        return true;
      },
      [](const Result<bool>&) {});
  if (!done) given_up += count;
}

}  // namespace muster::nccl
