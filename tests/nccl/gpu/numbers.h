#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nccl/gpu/rank.h"

namespace muster::test::gpu {

/// An all_reduce of so many elements from one buffer to another.
struct Sum {
  const Memory& from;
  const Memory& to;
  const Stream& stream;
  std::size_t count = 1;
  DataType type = DataType::int64;

  Result<void> over(Communicator& communicator, Duration timeout = patience) const {
    return communicator.all_reduce(from.at(), to.at(), count, type, ReduceOp::sum, stream.handle(),
                                   timeout);
  }
};

/// A large one, in place.
inline Sum large_sum(const Memory& memory, const Stream& stream, std::size_t bytes) {
  return {memory, memory, stream, bytes / sizeof(float), DataType::float32};
}

/// A number to give, and one to get: the sum of what all ranks give.
class Numbers {
 public:
  explicit Numbers(Rank& rank)
      : size_(rank.size()),
        sent_(rank.driver(), sizeof(std::int64_t)),
        received_(rank.driver(), sizeof(std::int64_t)),
        stream_(rank.driver()) {
    give(share_of(rank.index()));
    clear();
  }

  static std::int64_t share_of(int rank) { return rank + 1; }

  void give(std::int64_t number) { sent_.set(number); }
  /// Once the stream is idle: what is still on it may use the memory.
  void clear() {
    stream_.wait();
    received_.set(std::int64_t{0});
  }
  Sum sum() const { return {sent_, received_, stream_}; }
  const Stream& stream() const { return stream_; }

  /// Once the stream is idle.
  std::int64_t received() const {
    stream_.wait();
    return received_.get<std::int64_t>();
  }
  bool is_right() const { return received() == size_ * (size_ + 1) / 2; }

  /// All of it; a Failure where the sum is wrong.
  void reduce(Communicator& communicator) {
    clear();
    require(sum().over(communicator));
    if (!is_right()) throw Failure("a sum is wrong: " + std::to_string(received()));
  }

 private:
  const int size_;
  Memory sent_;
  Memory received_;
  Stream stream_;
};

}  // namespace muster::test::gpu
