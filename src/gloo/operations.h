#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gloo/mesh.h"
#include "muster/communicator.h"

namespace muster::gloo_internal {

/// The data of one call. Its tag is the same on all ranks that make the same call, and on no
/// others: Gloo matches only equal tags, and would write beyond a buffer if two calls differed.
struct Transfer {
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

void all_reduce(const Transfer& transfer);
void broadcast(const Transfer& transfer);
void reduce(const Transfer& transfer);
void all_gather(const Transfer& transfer);
void reduce_scatter(const Transfer& transfer);
void all_to_all(const Transfer& transfer);
void gather(const Transfer& transfer);
void scatter(const Transfer& transfer);
/// Passes when all ranks have come.
void barrier(Mesh& mesh, std::uint32_t tag);

/// A send or a receive that has begun.
class Posted {
 public:
  enum class Direction { send, receive };
  Posted(const Transfer& transfer, Direction direction);
  void wait();

 private:
  std::unique_ptr<::gloo::transport::UnboundBuffer> buffer_;
  Direction direction_;
};

}  // namespace muster::gloo_internal
