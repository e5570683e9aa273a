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

namespace muster::gloo_internal {
namespace {

constexpr std::uint8_t slot_of_posted = 0x40;  // Gloo's own collectives take 1 to 8

std::size_t bytes_of(const Transfer& transfer) { return transfer.count * size_of(transfer.type); }

/// Gloo takes what it only reads as what it writes, too.
char* bytes_at(const void* memory) { return static_cast<char*>(const_cast<void*>(memory)); }

bool is_root(const Transfer& transfer) { return transfer.mesh.context()->rank == transfer.rank; }

std::size_t size(const Transfer& transfer) {
  return static_cast<std::size_t>(transfer.mesh.context()->size);
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

void average(const Transfer& transfer, void* sums) {
  if (transfer.reduce != ReduceOp::average) return;
  divide(sums, transfer.count, transfer.type, transfer.mesh.context()->size);
}

/// For a transfer that only moves bytes, with one buffer to read and one to write.
template <class Options>
void set(Options& options, const Transfer& transfer, std::size_t sent, std::size_t received) {
  options.setInput(bytes_at(transfer.send), sent);
  options.setOutput(bytes_at(transfer.receive), received);
  options.setTag(transfer.tag);
}

}  // namespace

void all_reduce(const Transfer& transfer) {
  ::gloo::AllreduceOptions options(transfer.mesh.context());
  with_word(transfer.type, [&](auto word) {
    using Word = decltype(word);
    if (transfer.send != transfer.receive) {
      options.setInput(words<Word>(transfer.send), transfer.count);
    }
    options.setOutput(words<Word>(transfer.receive), transfer.count);
  });
  options.setReduceFunction(reduce_function_of(transfer.type, transfer.reduce));
  options.setTag(transfer.tag);
  ::gloo::allreduce(options);
  average(transfer, transfer.receive);
}

void broadcast(const Transfer& transfer) {
  ::gloo::BroadcastOptions options(transfer.mesh.context());
  const std::size_t bytes = bytes_of(transfer);
  if (is_root(transfer) && transfer.send != transfer.receive) {
    options.setInput(bytes_at(transfer.send), bytes);
  }
  options.setOutput(bytes_at(transfer.receive), bytes);
  options.setRoot(transfer.rank);
  options.setTag(transfer.tag);
  ::gloo::broadcast(options);
}

void reduce(const Transfer& transfer) {
  ::gloo::ReduceOptions options(transfer.mesh.context());
  std::vector<char> scratch(is_root(transfer) ? 0 : bytes_of(transfer));
  void* const to = is_root(transfer) ? transfer.receive : scratch.data();
  with_word(transfer.type, [&](auto word) {
    using Word = decltype(word);
    if (transfer.send != to) options.setInput(words<Word>(transfer.send), transfer.count);
    options.setOutput(words<Word>(to), transfer.count);
  });
  options.setRoot(transfer.rank);
  options.setReduceFunction(reduce_function_of(transfer.type, transfer.reduce));
  options.setTag(transfer.tag);
  ::gloo::reduce(options);
  if (is_root(transfer)) average(transfer, to);
}

void all_gather(const Transfer& transfer) {
  ::gloo::AllgatherOptions options(transfer.mesh.context());
  const std::size_t bytes = bytes_of(transfer);
  set(options, transfer, bytes, size(transfer) * bytes);
  ::gloo::allgather(options);
}

/// Everybody gets everybody's part for it and adds them up in the order of ranks: as many bytes as
/// a ring would move.
void reduce_scatter(const Transfer& transfer) {
  const std::size_t bytes = bytes_of(transfer);
  std::vector<char> parts(size(transfer) * bytes);
  Transfer exchange = transfer;
  exchange.receive = parts.data();
  all_to_all(exchange);
  const ReduceFunction combine = reduce_function_of(transfer.type, transfer.reduce);
  for (std::size_t rank = 1; rank < size(transfer); ++rank) {
    combine(parts.data(), parts.data(), parts.data() + rank * bytes, transfer.count);
  }
  average(transfer, parts.data());
  std::memcpy(transfer.receive, parts.data(), bytes);
}

void all_to_all(const Transfer& transfer) {
  ::gloo::AlltoallOptions options(transfer.mesh.context());
  const std::size_t bytes = size(transfer) * bytes_of(transfer);
  set(options, transfer, bytes, bytes);
  ::gloo::alltoall(options);
}

void gather(const Transfer& transfer) {
  ::gloo::GatherOptions options(transfer.mesh.context());
  const std::size_t bytes = bytes_of(transfer);
  options.setInput(bytes_at(transfer.send), bytes);
  if (is_root(transfer)) {
    options.setOutput(bytes_at(transfer.receive), size(transfer) * bytes);
  }
  options.setRoot(transfer.rank);
  options.setTag(transfer.tag);
  ::gloo::gather(options);
}

void scatter(const Transfer& transfer) {
  ::gloo::ScatterOptions options(transfer.mesh.context());
  const std::size_t bytes = bytes_of(transfer);
  if (is_root(transfer)) {
    std::vector<char*> parts;
    for (std::size_t rank = 0; rank < size(transfer); ++rank) {
      parts.push_back(bytes_at(transfer.send) + rank * bytes);
    }
    options.setInputs(parts, bytes);
  }
  options.setOutput(bytes_at(transfer.receive), bytes);
  options.setRoot(transfer.rank);
  options.setTag(transfer.tag);
  ::gloo::scatter(options);
}

void barrier(Mesh& mesh, std::uint32_t tag) {
  ::gloo::BarrierOptions options(mesh.context());
  options.setTag(tag);
  ::gloo::barrier(options);
}

Posted::Posted(const Transfer& transfer, Direction direction) : direction_(direction) {
  const bool is_send = direction == Direction::send;
  buffer_ = transfer.mesh.context()->createUnboundBuffer(
      bytes_at(is_send ? transfer.send : transfer.receive), bytes_of(transfer));
  const auto slot = ::gloo::Slot::build(slot_of_posted, transfer.tag);
  if (is_send) {
    buffer_->send(transfer.rank, slot, 0, bytes_of(transfer));
  } else {
    buffer_->recv(transfer.rank, slot, 0, bytes_of(transfer));
  }
}

void Posted::wait() {
  if (direction_ == Direction::send) {
    buffer_->waitSend();
  } else {
    buffer_->waitRecv();
  }
}

}  // namespace muster::gloo_internal
