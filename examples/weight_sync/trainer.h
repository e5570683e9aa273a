#pragma once

#include <iostream>
#include <string>
#include <vector>

#include "weight_sync/slice.h"

namespace weight_sync {

/// Gives each version to the servers of all slices, one slice after the other.
class Trainer {
 public:
  Trainer(std::size_t slice_bytes, std::size_t bucket_bytes)
      : slice_bytes_(slice_bytes), bucket_bytes_(bucket_bytes) {}

  muster::Result<void> add(Backend backend, muster::StatelessProcessGroup group) {
    slices_.emplace_back(std::move(backend), std::move(group), bucket_bytes_);
    auto connected = slices_.back().connect();
    return connected ? connected : slices_.back().go_on(connected.error());
  }

  muster::Result<void> publish(std::uint64_t version) {
    for (std::size_t index = 0; index < slices_.size(); ++index) {
      Slice& slice = slices_[index];
      Weights weights = weights_of(version, static_cast<int>(index), slice_bytes_);
      const Order order = order_of(version, weights, bucket_bytes_);
      for (;;) {
        auto done = take_in(slice);
        if (done) done = give(slice, order, weights);
        if (done) break;
        std::cout << "slice " << index << ": " << done.error().message() << std::endl;
        if (auto recovered = slice.go_on(done.error()); !recovered) return recovered;
      }
      std::cout << "version " << version << ": slice " << index << " on "
                << slice.group().world_size() - 1 << " servers" << std::endl;
    }
    return {};
  }

  /// All servers end, too.
  muster::Result<void> end() {
    for (Slice& slice : slices_) {
      const auto told = slice.group().broadcast_obj(Order(), muster::Rank{trainer_rank}, patience);
      if (!told) return told.error();
      if (auto left = slice.leave(); !left) return left;
    }
    return {};
  }

 private:
  /// Servers that were started again wait to be taken in.
  static muster::Result<void> take_in(Slice& slice) {
    const auto members = slice.group().members(patience);
    if (!members) return members.error();
    Order order;
    order.kind = Order::Kind::resize;
    order.new_size = static_cast<int>(members->size());  // the members, then the candidates
    if (order.new_size <= slice.group().world_size()) return {};
    const auto told = slice.group().broadcast_obj(order, muster::Rank{trainer_rank}, patience);
    if (!told) return told.error();
    return slice.regroup(order.new_size);
  }

  static muster::Result<void> give(Slice& slice, const Order& order, Weights& weights) {
    if (slice.group().world_size() == 1) return {};
    const auto told = slice.group().broadcast_obj(order, muster::Rank{trainer_rank}, patience);
    if (!told) return told.error();
    if (auto moved = slice.move(weights); !moved) return moved;
    return slice.pass_barrier();
  }

  std::size_t slice_bytes_;
  std::size_t bucket_bytes_;
  std::vector<Slice> slices_;
};

}  // namespace weight_sync
