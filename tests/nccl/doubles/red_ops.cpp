#include "nccl/doubles/red_ops.h"

#include <atomic>
#include <cstring>

#include "nccl/doubles/communicator.h"
#include "nccl/doubles/counts.h"
#include "nccl/doubles/data_types.h"
#include "nccl/doubles/exported.h"
#include "nccl/doubles/faults.h"

// Of NCCL's interface: reductions that a host makes. A refusal of these is no refusal of the
// thread's group, and the communicator does not keep it.

namespace nccl_double {
namespace {

constexpr int handles_of_each = 1 << 16;
constexpr int communicators_max = 1 << 14;
constexpr int host_immediate = 1;

int next_first() {
  static std::atomic<int> made{0};
  return (made++ % communicators_max + 1) * handles_of_each;
}

int refuse(const char* what) {
  set_last_error(std::string("reduction operation: ") + what);
  return invalid_argument;
}

}  // namespace

RedOps::RedOps() : first_(next_first()) {}

int RedOps::add(const RedOp& op) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    free_.push_back(places_.size());
    places_.emplace_back();
  }
  const std::size_t place = free_.back();
  free_.pop_back();
  places_[place] = op;
  ++counts().red_ops;
  ++counts().made_red_ops;
  return first_ + static_cast<int>(place);
}

bool RedOps::remove(int handle) {
  const std::lock_guard lock(mutex_);
  const auto place = static_cast<std::size_t>(handle - first_);
  if (handle < first_ || place >= places_.size() || !places_[place]) return false;
  places_[place].reset();
  free_.push_back(place);
  --counts().red_ops;
  return true;
}

std::optional<RedOp> RedOps::find(int handle) const {
  const std::lock_guard lock(mutex_);
  const auto place = static_cast<std::size_t>(handle - first_);
  return handle < first_ || place >= places_.size() ? std::nullopt : places_[place];
}

}  // namespace nccl_double

using namespace nccl_double;

DOUBLE_EXPORT int ncclRedOpCreatePreMulSum(int* handle, const void* factor, int type, int residence,
                                           void* communicator) {
  const auto own = find_communicator(communicator);
  if (own == nullptr) return invalid_argument;
  if (const int result = own->refusal()) return result;
  const CallFault fault = fault_of_call(Phase::red_op, own->place.rank);
  if (fault.result != 0) return fault.result;
  RedOp op{type};
  if (residence == host_immediate) {
    const std::size_t size = size_of_type(type);
    if (size == 0) return internal_error;
    std::memcpy(op.factor.data(), factor, size);
  } else {
    op.address = factor;
  }
  *handle = own->red_ops.add(op);
  return success;
}

/// After the end of its communicator NCCL would read memory that is freed; this refuses it.
DOUBLE_EXPORT int ncclRedOpDestroy(int handle, void* communicator) {
  if (handle >= 0 && handle < reduction_count) return refuse("it is built in");
  if (handle < 0) return refuse("it is none");
  const auto own = find_communicator(communicator);
  if (own == nullptr) return refuse("there is no communicator");
  if (own->is_gone() || !own->red_ops.remove(handle)) return refuse("the communicator has none");
  return success;
}
