#pragma once

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "weight_sync/slice.h"

namespace weight_sync {

/// Gives each version to the servers of all slices, one slice after the other.
class Trainer {
 public:
  explicit Trainer(std::size_t slice_bytes) : slice_bytes_(slice_bytes) {}

  muster::Result<void> add(Slice slice) {
    slices_.push_back(std::move(slice));
    const auto met = slices_.back().meet();
    return met ? met : slices_.back().recover(met.error());
  }

  /// The next version goes to all servers. A trainer that was started again learns from them which
  /// one is the next; also later, if they come later.
  muster::Result<void> publish() {
    for (;;) {
      const std::uint64_t version = highest_version() + 1;
      for (std::size_t index = 0; index < slices_.size(); ++index) {
        if (auto given = give(index, version); !given) return given;
      }
      if (highest_version() == version) return {};
    }
  }

  /// All servers end, too.
  muster::Result<void> end() {
    for (Slice& slice : slices_) {
      for (;;) {
        auto told = slice.take_in();
        if (told) told = slice.tell(Order());
        if (told) break;
        if (auto recovered = slice.recover(told.error()); !recovered) return recovered;
      }
      if (auto left = slice.leave(); !left) return left;
    }
    return {};
  }

 private:
  std::uint64_t highest_version() const {
    std::uint64_t highest = 0;
    for (const Slice& slice : slices_) highest = std::max(highest, slice.highest_version());
    return highest;
  }

  /// To whoever is there, as often as it takes; or not at all, if one of them has a later version.
  muster::Result<void> give(std::size_t index, std::uint64_t version) {
    Slice& slice = slices_[index];
    Weights weights = weights_of(version, static_cast<int>(index), slice_bytes_);
    const Order order = order_of(version, weights, slice.bucket_bytes());
    for (;;) {
      auto done = slice.take_in();
      if (done && slice.highest_version() >= version) return {};
      if (done && slice.server_count() > 0) done = slice.tell(order);
      if (done && slice.server_count() > 0) done = slice.move(weights);
      if (done) done = slice.pass_barrier(version);
      if (done) break;
      if (auto recovered = slice.recover(done.error()); !recovered) return recovered;
    }
    std::cout << "version " << version << ": slice " << index << " on " << slice.server_count()
              << " servers" << std::endl;
    return {};
  }

  std::size_t slice_bytes_;
  std::vector<Slice> slices_;
};

}  // namespace weight_sync
