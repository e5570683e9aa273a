#pragma once

#include <iostream>

#include "weight_sync/slice.h"

namespace weight_sync {

/// One process of an inference server: does what the trainer orders, until it is told to end. While
/// there is no trainer it serves what it has, and waits for one.
class Server {
 public:
  explicit Server(Slice slice) : slice_(std::move(slice)) {}

  muster::Result<void> run() {
    auto done = slice_.meet();
    for (;;) {
      if (!done) done = slice_.recover(done.error());
      if (!done) return done;
      if (slice_.leads()) {
        done = look_for_others();
        continue;
      }
      const auto order = slice_.next_order();
      if (!order) {
        done = order.error();
        continue;
      }
      if (order->kind == Order::Kind::end) break;
      done = order->kind == Order::Kind::regroup ? slice_.regroup() : take(*order);
    }
    return slice_.leave();
  }

 private:
  static muster::Error failure(const std::string& what) {
    muster::Error error;
    error.code = muster::ErrorCode::mismatch;
    error.operation = "weight_sync";
    error.detail = what;
    return error;
  }

  /// One of the servers does so while there is no trainer.
  muster::Result<void> look_for_others() {
    std::this_thread::sleep_for(between_attempts);
    return slice_.take_in();
  }

  /// The version is served from now on, if it has come whole, and all others have it.
  muster::Result<void> take(const Order& order) {
    if (order.bucket_bytes != slice_.bucket_bytes()) {
      return failure("the trainer has another --bucket-bytes: " +
                     std::to_string(order.bucket_bytes));
    }
    Weights weights(order.bytes);
    if (auto moved = slice_.move(weights); !moved) return moved;
    if (const Tensor* const wrong = first_wrong(order, weights)) {
      return failure(wrong->name + " of version " + std::to_string(order.version) +
                     " is not what its checksum says");
    }
    if (auto passed = slice_.pass_barrier(order.version); !passed) return passed;
    weights_ = std::move(weights);
    std::cout << "serves version " << order.version << ", " << weights_.size() << " bytes"
              << std::endl;
    return {};
  }

  Slice slice_;
  Weights weights_;
};

}  // namespace weight_sync
