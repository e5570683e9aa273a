#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "communicator/gate.h"
#include "muster/nccl_functions.h"
#include "nccl/device.h"
#include "nccl/inside.h"

namespace muster::nccl_internal {

/// A communicator to abort. Its gate is closed.
struct AbortJob {
  nccl::Functions nccl;
  std::shared_ptr<const Device> device;
  nccl::Handle handle = nullptr;
  std::shared_ptr<communicator::Gate> gate;
  Duration timeout{0};
  std::shared_ptr<const InsideCount> inside;  ///< of the calls that wait for the abort alone
};

/// Aborts communicators on threads of its own. Those of one device that are submitted together go
/// into one NCCL group: one after the other they may hang on each other's kernels. No job waits for
/// earlier jobs, nor for communicators with calls in progress. Without jobs there is no thread.
///
/// Life cycle of a job: submitted -> all calls have returned, or one is inside a function of NCCL
/// that blocks, or its timeout has passed -> ncclCommAbort on another thread -> done; or it failed
/// or its timeout has passed again, and the handle is given up and counted.
class Aborter : public std::enable_shared_from_this<Aborter> {
 public:
  void submit(std::vector<AbortJob> jobs);

  /// The number of handles that this process has given up.
  static int given_up_count();
  /// Counts a handle that was given up elsewhere.
  static void count_given_up();

 private:
  void work(int device);
  static void abort(std::vector<AbortJob> batch);

  std::mutex mutex_;
  std::map<int, std::vector<AbortJob>> waiting_;  ///< by the device's ordinal
  std::set<int> working_;                         ///< devices for which a thread collects jobs
};

}  // namespace muster::nccl_internal
