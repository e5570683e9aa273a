#include "gloo/operations.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <gloo/types.h>

#include <cstring>
#include <utility>
#include <vector>

#include "gloo/reduction.h"

namespace muster::gloo {
namespace {

constexpr std::uint8_t slot_of_posted = 0x40;  // Gloo's own collectives take 1 to 8

std::size_t bytes_of(const Operation& operation) {
  return operation.count * size_of(operation.type);
}

/// Gloo takes what it only reads as what it writes, too.
char* bytes_at(const void* memory) { return static_cast<char*>(const_cast<void*>(memory)); }

bool is_root(const Operation& operation) {
  return operation.mesh.context()->rank == operation.rank;
}

std::size_t size(const Operation& operation) {
  return static_cast<std::size_t>(operation.mesh.context()->size);
}

/// Calls `work` with a number that is as wide as an element: it cuts buffers between elements.
template <class Work>
void with_word(DataType type, Work work) {
  switch (size_of(type)) {
    case 1: return work(std::uint8_t{});
    case 2: return work(std::uint16_t{});
    case 4: return work(std::uint32_t{});
    default: return work(std::uint64_t{});
  }
}

template <class Word>
Word* words(const void* memory) {
  return static_cast<Word*>(const_cast<void*>(memory));
}

void average(const Operation& operation, void* sums) {
  if (operation.reduce != ReduceOp::average) return;
  divide(sums, operation.count, operation.type, operation.mesh.context()->size);
}

/// Of an operation that only moves bytes, with one buffer to read and one to write.
template <class Options>
void set(Options& options, const Operation& operation, std::size_t sent, std::size_t received) {
  options.setInput(bytes_at(operation.send), sent);
  options.setOutput(bytes_at(operation.receive), received);
  options.setTag(operation.tag);
}

}  // namespace

void all_reduce(const Operation& operation) {
  ::gloo::AllreduceOptions options(operation.mesh.context());
  with_word(operation.type, [&](auto word) {
    using Word = decltype(word);
    if (operation.send != operation.receive) {
      options.setInput(words<Word>(operation.send), operation.count);
    }
    options.setOutput(words<Word>(operation.receive), operation.count);
  });
  options.setReduceFunction(reduction_of(operation.type, operation.reduce));
  options.setTag(operation.tag);
  ::gloo::allreduce(options);
  average(operation, operation.receive);
}

void broadcast(const Operation& operation) {
  ::gloo::BroadcastOptions options(operation.mesh.context());
  const std::size_t bytes = bytes_of(operation);
  if (is_root(operation) && operation.send != operation.receive) {
    options.setInput(bytes_at(operation.send), bytes);
  }
  options.setOutput(bytes_at(operation.receive), bytes);
  options.setRoot(operation.rank);
  options.setTag(operation.tag);
  ::gloo::broadcast(options);
}

void reduce(const Operation& operation) {
  ::gloo::ReduceOptions options(operation.mesh.context());
  std::vector<char> scratch(is_root(operation) ? 0 : bytes_of(operation));
  void* const to = is_root(operation) ? operation.receive : scratch.data();
  with_word(operation.type, [&](auto word) {
    using Word = decltype(word);
    if (operation.send != to) options.setInput(words<Word>(operation.send), operation.count);
    options.setOutput(words<Word>(to), operation.count);
  });
  options.setRoot(operation.rank);
  options.setReduceFunction(reduction_of(operation.type, operation.reduce));
  options.setTag(operation.tag);
  ::gloo::reduce(options);
  if (is_root(operation)) average(operation, to);
}

void all_gather(const Operation& operation) {
  ::gloo::AllgatherOptions options(operation.mesh.context());
  const std::size_t bytes = bytes_of(operation);
  set(options, operation, bytes, size(operation) * bytes);
  ::gloo::allgather(options);
}

/// Everybody gets everybody's part for it and adds them up in the order of ranks: as many bytes as
/// a ring would move.
void reduce_scatter(const Operation& operation) {
  const std::size_t bytes = bytes_of(operation);
  std::vector<char> parts(size(operation) * bytes);
  Operation exchange = operation;
  exchange.receive = parts.data();
  all_to_all(exchange);
  const Reduction combine = reduction_of(operation.type, operation.reduce);
  for (std::size_t rank = 1; rank < size(operation); ++rank) {
    combine(parts.data(), parts.data(), parts.data() + rank * bytes, operation.count);
  }
  average(operation, parts.data());
  std::memcpy(operation.receive, parts.data(), bytes);
}

void all_to_all(const Operation& operation) {
  ::gloo::AlltoallOptions options(operation.mesh.context());
  const std::size_t bytes = size(operation) * bytes_of(operation);
  set(options, operation, bytes, bytes);
  ::gloo::alltoall(options);
}

void gather(const Operation& operation) {
  ::gloo::GatherOptions options(operation.mesh.context());
  const std::size_t bytes = bytes_of(operation);
  options.setInput(bytes_at(operation.send), bytes);
  if (is_root(operation)) {
    options.setOutput(bytes_at(operation.receive), size(operation) * bytes);
  }
  options.setRoot(operation.rank);
  options.setTag(operation.tag);
  ::gloo::gather(options);
}

void scatter(const Operation& operation) {
  ::gloo::ScatterOptions options(operation.mesh.context());
  const std::size_t bytes = bytes_of(operation);
  if (is_root(operation)) {
    std::vector<char*> parts;
    for (std::size_t rank = 0; rank < size(operation); ++rank) {
      parts.push_back(bytes_at(operation.send) + rank * bytes);
    }
    options.setInputs(parts, bytes);
  }
  options.setOutput(bytes_at(operation.receive), bytes);
  options.setRoot(operation.rank);
  options.setTag(operation.tag);
  ::gloo::scatter(options);
}

void barrier(Mesh& mesh, std::uint32_t tag) {
  ::gloo::BarrierOptions options(mesh.context());
  options.setTag(tag);
  ::gloo::barrier(options);
}

Posted::Posted(const Operation& operation, Direction direction) : direction_(direction) {
  const bool is_send = direction == Direction::send;
  buffer_ = operation.mesh.context()->createUnboundBuffer(
      bytes_at(is_send ? operation.send : operation.receive), bytes_of(operation));
  const auto slot = ::gloo::Slot::build(slot_of_posted, operation.tag);
  if (is_send) {
    buffer_->send(operation.rank, slot, 0, bytes_of(operation));
  } else {
    buffer_->recv(operation.rank, slot, 0, bytes_of(operation));
  }
}

void Posted::wait() {
  if (direction_ == Direction::send) {
    buffer_->waitSend();
  } else {
    buffer_->waitRecv();
  }
}

}  // namespace muster::gloo
