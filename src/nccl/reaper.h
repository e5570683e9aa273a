#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "communicator/gate.h"
#include "muster/nccl_functions.h"
#include "nccl/device.h"

namespace muster::nccl {

/// A communicator that is to be aborted: its gate is closed.
struct Doomed {
  NcclFunctions nccl;
  std::shared_ptr<const Device> device;
  NcclHandle handle = nullptr;
  std::shared_ptr<communicator::Gate> gate;
  Duration patience{0};
};

/// Aborts communicators on threads of its own, those of one device that come together in one NCCL
/// group: one after the other they may hang on each other's kernels. Nobody waits for those that
/// came before, nor for those in which a call lasts. Has no thread while there is nothing to abort.
///
/// Life cycle of one: submitted -> all who are inside have left, or its patience is over ->
/// ncclCommAbort on another thread -> done, or it failed or its patience is over again: given up
/// and counted.
class Reaper : public std::enable_shared_from_this<Reaper> {
 public:
  void submit(std::vector<Doomed> doomed);

  /// Of the whole process.
  static int given_up_count();
  /// One more was given up, by whom it did not come to.
  static void count_given_up();

 private:
  void work(int device);
  static void abort(std::vector<Doomed> batch);

  std::mutex mutex_;
  std::map<int, std::vector<Doomed>> waiting_;  ///< by the device's ordinal
  std::set<int> working_;                       ///< devices for which a thread gathers
};

}  // namespace muster::nccl
