#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gloo/mesh.h"
#include "muster/communicator.h"

namespace muster::gloo {

/// What one call is to do. Its tag is the same on all ranks that mean the same call, and on no
/// others: Gloo only brings together what has one tag, else it would write beyond a buffer.
struct Operation {
  Mesh& mesh;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  ///< above zero, and small enough for the whole of the buffers
  DataType type = DataType::uint8;
  ReduceOp reduce = ReduceOp::sum;
  int rank = 0;  ///< the root or the peer
  std::uint32_t tag = 0;
};

// Each returns when it is done on this rank, and throws what Gloo throws, or Interrupted.

void all_reduce(const Operation& operation);
void broadcast(const Operation& operation);
void reduce(const Operation& operation);
void all_gather(const Operation& operation);
void reduce_scatter(const Operation& operation);
void all_to_all(const Operation& operation);
void gather(const Operation& operation);
void scatter(const Operation& operation);
/// Passes when all ranks have come.
void barrier(Mesh& mesh, std::uint32_t tag);

/// A send or a receive that has begun.
class Posted {
 public:
  enum class Direction { send, receive };
  Posted(const Operation& operation, Direction direction);
  void wait();

 private:
  std::unique_ptr<::gloo::transport::UnboundBuffer> buffer_;
  Direction direction_;
};

}  // namespace muster::gloo
