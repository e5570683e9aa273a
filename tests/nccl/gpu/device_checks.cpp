#include <optional>
#include <string>
#include <thread>

#include "nccl/gpu/bare.h"
#include "nccl/gpu/numbers.h"
#include "nccl/gpu/parts.h"

// Check 1: NCCL takes the device of the context that Muster pushes, whatever the caller has.

namespace muster::test::gpu {
namespace {

constexpr std::size_t small_bytes = 2u << 20;

std::size_t free_memory(const Driver& driver) {
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  must(driver.memory(&free_bytes, &all_bytes), "cuMemGetInfo");
  return free_bytes;
}

void* current_context(const Driver& driver) {
  void* context = nullptr;
  must(driver.current(&context), "cuCtxGetCurrent");
  return context;
}

int device_as_nccl_sees_it(const Rank& rank, Communicator& communicator) {
  using Ask = int (*)(nccl::Handle handle, int* device);
  const auto ask = reinterpret_cast<Ask>(nccl_symbol(rank, "ncclCommCuDevice"));
  int device = -1;
  require(nccl::with_native(communicator, [&](nccl::Handle handle) -> Result<void> {
    must(ask(handle, &device), "ncclCommCuDevice");
    return {};
  }));
  return device;
}

/// Makes a communicator and uses it; the calling thread's context stays as it was.
void use(Rank& rank, StatelessProcessGroup& group, int device, const Numbers& numbers) {
  const void* const before = current_context(rank.driver());
  auto communicator = require(nccl::create(group, device, rank.options()));
  const int seen = device_as_nccl_sees_it(rank, communicator);
  rank.expect(seen == device,
              "ncclCommCuDevice is " + std::to_string(seen) + ", not " + std::to_string(device));
  require(numbers.sum().over(communicator));
  rank.expect(current_context(rank.driver()) == before,
              "the caller's current context is another one");
  {
    const OnDevice current(rank.driver(), device);
    rank.expect(numbers.is_right(), "the sum is " + std::to_string(numbers.received()));
  }
  require(communicator.close());
}

}  // namespace

void device_of_thread(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());  // as after cudaSetDevice
  auto group = rank.join("g");
  const Numbers numbers(rank);
  std::optional<std::string> failure;
  std::thread([&] {
    try {
      rank.expect(current_context(rank.driver()) == nullptr, "a new thread has a context");
      use(rank, group, rank.device(), numbers);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }).join();
  if (failure) throw Failure(*failure);
}

void second_device(Rank& rank) {
  constexpr int second = 1;
  const OnDevice first_current(rank.driver(), 0);
  auto group = rank.join("g");
  std::optional<OnDevice> on_second(std::in_place, rank.driver(), second);
  const Numbers numbers(rank);
  const std::size_t free_of_second = free_memory(rank.driver());
  on_second.reset();
  const std::size_t free_of_first = free_memory(rank.driver());
  use(rank, group, second, numbers);
  const std::size_t left_of_first = free_memory(rank.driver());
  on_second.emplace(rank.driver(), second);
  const std::size_t left_of_second = free_memory(rank.driver());
  const auto mib = [](std::size_t before, std::size_t after) {
    return (static_cast<double>(before) - static_cast<double>(after)) / (1 << 20);
  };
  rank.figure("memory taken on device 0", mib(free_of_first, left_of_first), "MiB");
  rank.figure("on device 1", mib(free_of_second, left_of_second), "MiB");
  rank.expect(free_of_first <= left_of_first + small_bytes, "memory was taken on device 0");
}

}  // namespace muster::test::gpu
