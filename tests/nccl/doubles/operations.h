#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nccl/doubles/communicator.h"

namespace nccl_double {

enum class Kind : std::int32_t {
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  send,
  receive,
};

/// A call of a collective, or of p2p, as it was made. `root` is the peer of p2p.
struct Operation {
  Kind kind{};
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  int type = 0;
  int reduction = 0;
  int root = 0;
  /// What `reduction` is the handle of, as it was when the call was made; then that is
  /// `scaled_sum`.
  std::optional<RedOp> red_op = {};
};
inline bool is_point_to_point(const Operation& operation) { return operation.kind >= Kind::send; }

/// Why calls with such arguments are refused, 0 if they are not.
int refusal_of_arguments(const Communicator& own, const Operation& operation);
/// Copies what the host has made for the reduction: it may destroy that before a group ends.
int take_red_op(const Communicator& own, Operation& operation);

/// Makes the connections that these sends and receives need and that are not there: waits until
/// each peer does so, too. 0, 6, or after `stop` 3.
int connect_lanes(Communicator& own, const std::vector<Operation>& operations);

/// Both return when it is done, or after an abort.
void run_collective(Communicator& own, const Operation& operation);
/// All of them at the same time, so that none waits for another.
void run_point_to_point(Communicator& own, const std::vector<Operation>& operations);

}  // namespace nccl_double
