#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/forked.h"
#include "muster/runtime.h"
#include "muster/tensor.h"
#include "runtime/shared/new_file.h"
#include "runtime/tensor/shared_steps.h"
#include "runtime/tensor/store_steps.h"

namespace muster::runtime {

/// Writes a tensor's elements behind what the file has.
Result<void> append_packed(NewFile& file, const TensorView& tensor);

/// What a RankGroup keeps between calls on tensors.
class TensorState {
 public:
  /// The memory that all ranks share; made by the first call, and again when it has ended.
  /// Collective, if there is none yet.
  ///
  /// places   of the group's ranks
  /// errors   forked (a child would write into its parent's part), that of the call that has failed
  ///          on others while this rank had yet to make it, those of a collective
  /// returns  null: they share none, and `why_not` tells why
  Result<SharedSteps*> shared(StatelessProcessGroup& group, const std::vector<JobPlace>& places,
                              Steps::Clock::time_point deadline);
  const std::string& why_not() const { return why_not_; }
  /// That memory, if it is there.
  SharedSteps* shared_so_far() const { return shared_.get(); }

  /// A number for the next tensor that is sent by a communicator.
  std::uint64_t next_parcel() { return ++parcels_; }
  /// Keeps what was sent through shared memory until the receiver has taken the file's name away.
  void keep(NewFile sent);

 private:
  base::Owner owner_;
  std::unique_ptr<SharedSteps> shared_;
  std::string why_not_;
  std::uint64_t parcels_ = 0;
  std::vector<NewFile> sent_;
};

}  // namespace muster::runtime
