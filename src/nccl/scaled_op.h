#pragma once

#include "muster/communicator.h"
#include "muster/nccl_functions.h"

namespace muster::nccl_internal {

/// A reduction that NCCL makes for one call: a sum of what is multiplied by a factor before.
///
/// It may go as soon as the function that was given it has returned, although the group with that
/// call has not ended: NCCL has copied it by then.
class ScaledOp {
 public:
  /// type  of the elements, with a floating point; the factor is rounded to it
  ScaledOp(const nccl::Functions& nccl, nccl::Handle handle, DataType type, double factor);
  ~ScaledOp();
  ScaledOp(const ScaledOp&) = delete;
  ScaledOp& operator=(const ScaledOp&) = delete;

  /// Whether it was made, as an ncclResult_t.
  int result() const { return result_; }
  /// Its ncclRedOp_t.
  int number() const { return number_; }

 private:
  const nccl::Functions& nccl_;
  const nccl::Handle handle_;
  int number_ = 0;
  const int result_;
};

}  // namespace muster::nccl_internal
