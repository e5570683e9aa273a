#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nccl/doubles/cuda_stream.h"

namespace cuda_double {

/// As cuda.h has them.
enum Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  invalid_handle = 400,
  illegal_state = 401,
  not_ready = 600,
  context_is_destroyed = 709,
  capture_unsupported = 900,
};

using Uuid = std::array<unsigned char, 16>;

/// A device's primary context; it lives as long as the library.
struct Context {
  int device = 0;
  int retained = 0;
  std::shared_ptr<Stream> null_stream;
};

/// What was captured, one piece after the other.
struct Graph {
  std::vector<Stream::Work> pieces;
};

struct StreamEntry {
  std::shared_ptr<Stream> stream;
  Context* context = nullptr;
  bool is_blocking = true;         ///< waits for the null stream, and that for it
  std::shared_ptr<Graph> capture;  ///< into which its work goes; null: nothing is captured
};

struct Event {
  std::shared_ptr<Stream> stream;  ///< where it was recorded last; null: nowhere yet
  std::uint64_t number = 0;
};

struct Allocation {
  std::size_t size_bytes = 0;
  int device = 0;
};

struct Device {
  Uuid uuid{};
  Context context;
};

/// Everything there is. The mutex is held for moments only, never while a stream is waited for.
struct State {
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;
  int driver_version = 13000;
  int init_result = success;
  std::size_t memory_bytes = std::size_t{1} << 30;
  bool is_initialized = false;
  std::map<std::string, int> failures;
  std::map<void*, StreamEntry> streams;
  std::map<void*, std::shared_ptr<Event>> events;
  std::map<std::uintptr_t, Allocation> allocations;
  std::map<void*, std::shared_ptr<Graph>> graphs;  ///< also those that can be launched

  void configure_from_environment();
  void set_devices(int count);
  /// What the function has to give before it does anything; `success`: it may go on.
  int refusal(const char* function);
  bool knows(const Context* context) const;
  /// Whether these bytes lie within one allocation.
  bool is_device_memory(std::uintptr_t first, std::size_t size_bytes) const;
  /// Of the allocation that has this byte.
  std::optional<int> device_of(std::uintptr_t address) const;
  std::size_t allocated_bytes(int device) const;
};
State& state();

/// The contexts of the calling thread, the current one last.
std::vector<Context*>& context_stack();

/// The current context, or why there is none, in `result`.
struct Current {
  Context* context = nullptr;
  int result = success;
};
Current current_context();

/// The stream of a handle; the handles 0 and 1 mean the null stream of the current context.
struct Found {
  StreamEntry entry;
  int result = success;
};
Found find_stream(void* handle);

/// Enqueues as CUDA's legacy default stream demands: its work waits for what the other streams
/// had, and theirs for its own, but for streams that are non-blocking. Gives the work's number; 0
/// where it is captured.
std::uint64_t enqueue(const StreamEntry& entry, Stream::Work work);

/// Waits for all that the streams of a context have.
void synchronize(const Context* context);

}  // namespace cuda_double
