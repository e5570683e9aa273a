#include "communicator/arguments.h"

#include <cstddef>
#include <limits>
#include <string>

namespace muster::communicator {

std::optional<Error> refusal_of(const Arguments& arguments, int world_size) {
  if (size_of(arguments.type) == 0) return client::invalid_argument("type: no DataType");
  if (arguments.operation > ReduceOp::average) {
    return client::invalid_argument("operation: no ReduceOp");
  }
  if (arguments.rank < 0 || arguments.rank >= world_size) {
    return client::invalid_argument("rank " + std::to_string(arguments.rank) + ": ranks are 0 to " +
                                    std::to_string(world_size - 1));
  }
  const std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  if (arguments.parts != 0 && arguments.count > most / size_of(arguments.type) / arguments.parts) {
    return client::invalid_argument("count: no memory holds so many elements");
  }
  return std::nullopt;
}

}  // namespace muster::communicator
