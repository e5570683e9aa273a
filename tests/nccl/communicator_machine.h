#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "muster/nccl.h"
#include "nccl/doubles/loaded.h"
#include "support/ranks.h"

// Communicators of ranks that are threads of the test.

namespace muster::test {

inline constexpr int team_size = 3;

/// In the environment as long as it lives.
struct ImplicitOrder {
  ImplicitOrder() { ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1); }
  ~ImplicitOrder() { ::unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT"); }
};

constexpr int device_count = 4;

inline nccl::Options doubled(Duration timeout = 20s) {
  nccl::Options options;
  options.timeout = timeout;
  options.warm_up = false;  // most tests look at a communicator that has called nothing yet
  options.nccl_library = std::getenv("NCCL_DOUBLE");
  options.cuda_library = std::getenv("CUDA_DOUBLE");
  return options;
}

/// Device memory of one rank, and a stream.
class Buffer {
 public:
  Buffer(int device, std::size_t count) : current_(device), count_(count) {
    REQUIRE(cuda().allocate(&memory_, count * sizeof(std::int32_t)) == 0);
    REQUIRE(cuda().create_stream(&stream_, 1) == 0);
  }
  ~Buffer() {
    cuda().synchronize_stream(stream_);
    cuda().destroy_stream(stream_);
    cuda().free(memory_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void fill(const std::vector<std::int32_t>& values) {
    if (values.empty()) return;
    REQUIRE(cuda().copy_in(memory_, values.data(), values.size() * sizeof values[0]) == 0);
  }
  std::vector<std::int32_t> values() {
    REQUIRE(cuda().synchronize_stream(stream_) == 0);
    std::vector<std::int32_t> values(count_);
    REQUIRE(cuda().copy_out(values.data(), memory_, count_ * sizeof values[0]) == 0);
    return values;
  }
  void* at() const { return reinterpret_cast<void*>(memory_); }
  void* stream() const { return stream_; }

 private:
  CurrentDevice current_;
  std::size_t count_;
  DevicePointer memory_ = 0;
  void* stream_ = nullptr;
};

/// Each test sees a machine of its own.
struct Machine {
  Machine() {
    cuda().reset();
    cuda().set_devices(device_count);
    nccl().set_leaks(0);
  }
  ~Machine() {
    nccl().clear_faults();
    CHECK(holds_soon(
        [] { return nccl().count("communicators") == 0 && nccl().count("threads") == 0; }));
    // A thread that has aborted a communicator gives its device's context back afterwards. If that
    // came after the next test's reset, it would be one of that test's contexts.
    CHECK(holds_soon([] { return cuda().alive("contexts") == 0; }));
    CHECK(nccl().count("descriptors") == 0);
    CHECK(nccl().count("red_ops") == 0);
    CHECK(nccl().waiting() == 0);
    nccl::forgive_attempts();
  }
};

/// Each rank is a thread with a communicator on a device of its own.
template <class Part>
void run_communicators(int world_size, const nccl::Options& options, const Part& part) {
  auto server = start_server();
  run_ranks(world_size, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, world_size);
    auto communicator = must(nccl::create(group, rank, options));
    part(communicator, group);
  });
}

/// An all_reduce of one number, in place.
inline Result<void> reduce(Communicator& communicator, Buffer& buffer,
                           Duration timeout = default_timeout, DataType type = DataType::int32) {
  return communicator.all_reduce(buffer.at(), buffer.at(), 1, type, ReduceOp::sum, buffer.stream(),
                                 timeout);
}

}  // namespace muster::test
