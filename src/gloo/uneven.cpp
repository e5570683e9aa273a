#include "gloo/uneven.h"

#include <cstring>
#include <vector>

#include "communicator/operation_call.h"
#include "gloo/reduction.h"

namespace muster::gloo_internal {
namespace {

/// Sends and receives of one operation, which all begin before one is waited for.
class Exchange {
 public:
  Exchange(const Transfer& transfer, Counts counts) : transfer_(transfer), counts_(counts) {}

  int own_rank() const { return transfer_.mesh.context()->rank; }
  int size() const { return static_cast<int>(counts_.size()); }
  bool is_root() const { return transfer_.rank == own_rank(); }

  std::size_t bytes_of(int rank) const {
    return counts_[static_cast<std::size_t>(rank)] * size_of(transfer_.type);
  }
  std::size_t bytes_before(int rank) const {
    return communicator::offset_in(counts_, rank) * size_of(transfer_.type);
  }
  /// The part of a rank in a buffer that has those of all.
  const char* sent_part(int rank) const {
    return static_cast<const char*>(transfer_.send) + bytes_before(rank);
  }
  char* received_part(int rank) const {
    return static_cast<char*>(transfer_.receive) + bytes_before(rank);
  }

  /// The part of `of`; what goes to this rank itself is copied by `copy`.
  void send(const void* part, int of, int peer) {
    Transfer sent = transfer_;
    sent.send = part;
    begin(sent, of, peer, Posted::Direction::send);
  }
  void receive(void* part, int of, int peer) {
    Transfer received = transfer_;
    received.receive = part;
    begin(received, of, peer, Posted::Direction::receive);
  }
  void copy(void* to, const void* from) const {
    const std::size_t bytes = bytes_of(own_rank());
    if (bytes > 0 && to != from) std::memmove(to, from, bytes);
  }
  void wait() {
    for (Posted& each : posted_) each.wait();
  }

 private:
  void begin(Transfer part, int of, int peer, Posted::Direction direction) {
    part.count = counts_[static_cast<std::size_t>(of)];
    part.rank = peer;
    if (part.count > 0 && peer != own_rank()) posted_.emplace_back(part, direction);
  }

  const Transfer& transfer_;
  const Counts counts_;
  std::vector<Posted> posted_;
};

}  // namespace

void all_gather_v(const Transfer& transfer, Counts counts) {
  Exchange exchange(transfer, counts);
  const int own = exchange.own_rank();
  for (int peer = 0; peer < exchange.size(); ++peer) {
    exchange.receive(exchange.received_part(peer), peer, peer);
    exchange.send(transfer.send, own, peer);
  }
  exchange.copy(exchange.received_part(own), transfer.send);
  exchange.wait();
}

void gather_v(const Transfer& transfer, Counts counts) {
  Exchange exchange(transfer, counts);
  const int own = exchange.own_rank();
  exchange.send(transfer.send, own, transfer.rank);
  if (exchange.is_root()) {
    for (int peer = 0; peer < exchange.size(); ++peer) {
      exchange.receive(exchange.received_part(peer), peer, peer);
    }
    exchange.copy(exchange.received_part(own), transfer.send);
  }
  exchange.wait();
}

void scatter_v(const Transfer& transfer, Counts counts) {
  Exchange exchange(transfer, counts);
  const int own = exchange.own_rank();
  exchange.receive(transfer.receive, own, transfer.rank);
  if (exchange.is_root()) {
    for (int peer = 0; peer < exchange.size(); ++peer) {
      exchange.send(exchange.sent_part(peer), peer, peer);
    }
    exchange.copy(transfer.receive, exchange.sent_part(own));
  }
  exchange.wait();
}

/// Added up in the order of ranks, as by `reduce_scatter`.
void reduce_scatter_v(const Transfer& transfer, Counts counts) {
  Exchange exchange(transfer, counts);
  const int own = exchange.own_rank();
  const std::size_t bytes = exchange.bytes_of(own);
  std::vector<char> parts(bytes * counts.size());
  const auto part_of = [&](int rank) {
    return parts.data() + static_cast<std::size_t>(rank) * bytes;
  };
  for (int peer = 0; peer < exchange.size(); ++peer) {
    exchange.receive(part_of(peer), own, peer);
    exchange.send(exchange.sent_part(peer), peer, peer);
  }
  if (bytes > 0) exchange.copy(part_of(own), exchange.sent_part(own));
  exchange.wait();
  if (bytes == 0) return;
  const std::size_t count = counts[static_cast<std::size_t>(own)];
  const ReduceFunction combine = reduce_function_of(transfer.type, transfer.reduce);
  for (int rank = 1; rank < exchange.size(); ++rank) {
    combine(parts.data(), parts.data(), part_of(rank), count);
  }
  if (transfer.reduce == ReduceOp::average) {
    divide(parts.data(), count, transfer.type, exchange.size());
  }
  std::memcpy(transfer.receive, parts.data(), bytes);
}

}  // namespace muster::gloo_internal
