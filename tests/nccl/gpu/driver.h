#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

// The CUDA driver, for the checks: what a host of communicators has of its own.

namespace muster::test::gpu {

/// Something that must hold does not.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// It cannot be looked at on this machine.
struct NotRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Address = std::uintptr_t;

/// Its functions, as cuda.h declares them.
struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*version)(int* version) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int size, int device) = nullptr;
  int (*retain)(void** context, int device) = nullptr;
  int (*push)(void* context) = nullptr;
  int (*pop)(void** context) = nullptr;
  int (*current)(void** context) = nullptr;
  int (*allocate)(Address* address, std::size_t bytes) = nullptr;
  int (*memory)(std::size_t* free_bytes, std::size_t* all_bytes) = nullptr;
  int (*copy_in)(Address to, const void* from, std::size_t bytes) = nullptr;
  int (*copy_out)(void* to, Address from, std::size_t bytes) = nullptr;
  int (*set_bytes)(Address to, unsigned char value, std::size_t bytes) = nullptr;
  int (*create_stream)(void** stream, unsigned flags) = nullptr;
  int (*destroy_stream)(void* stream) = nullptr;
  int (*query)(void* stream) = nullptr;
  int (*synchronize)(void* stream) = nullptr;
  // Null where the driver is too old for them.
  int (*begin_capture)(void* stream, int mode) = nullptr;
  int (*end_capture)(void* stream, void** graph) = nullptr;
  int (*instantiate)(void** executable, void* graph, unsigned long long flags) = nullptr;
  int (*launch)(void* executable, void* stream) = nullptr;
  int (*destroy_executable)(void* executable) = nullptr;
  int (*destroy_graph)(void* graph) = nullptr;
};

/// path  of libcuda; empty: libcuda.so.1
///
/// Throws NotRun where there is none, or none that works.
const Driver& load_driver(const std::string& path);

/// Throws Failure unless the driver's result is 0.
void must(int result, const char* function);

/// A device's primary context, current in this thread while this lives.
class OnDevice {
 public:
  OnDevice(const Driver& driver, int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  void* context() const { return context_; }

 private:
  const Driver& driver_;
  void* context_ = nullptr;
};

/// Memory of the current device. The process keeps it to its end: the driver frees nothing before
/// everything on the device is done, and something may hang there.
class Memory {
 public:
  Memory(const Driver& driver, std::size_t bytes);
  ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* at() const { return reinterpret_cast<void*>(address_); }
  /// Every byte of it.
  void set_bytes(unsigned char value);
  template <class T>
  void set(const T& value) {
    must(driver_.copy_in(address_, &value, sizeof value), "cuMemcpyHtoD");
    settle();
  }
  template <class T>
  T get(std::size_t index = 0) const {
    T value{};
    must(driver_.copy_out(&value, address_ + index * sizeof value, sizeof value), "cuMemcpyDtoH");
    return value;
  }

 private:
  /// Streams that do not wait for the default stream see what was done on that.
  void settle() const;

  const Driver& driver_;
  const std::size_t bytes_;
  Address address_ = 0;
};

/// A stream that does not wait for the default stream. It is given up, not destroyed, if something
/// hangs on it.
class Stream {
 public:
  explicit Stream(const Driver& driver);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void* handle() const { return handle_; }
  bool is_idle() const;
  /// Whether it was idle in this time.
  bool is_idle_within(std::chrono::milliseconds time) const;
  /// Throws Failure if it is not.
  void wait(std::chrono::milliseconds time = std::chrono::seconds(60)) const;

 private:
  const Driver& driver_;
  void* handle_ = nullptr;
};

/// What is done to a stream, captured, to be done again and again.
class Graph {
 public:
  enum class Mode { global = 0, thread_local_ = 1, relaxed = 2 };

  /// Throws NotRun where the driver cannot capture, Failure where it does not.
  Graph(const Driver& driver, const Stream& stream, Mode mode, const std::function<void()>& work);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(const Stream& stream) const;

 private:
  const Driver& driver_;
  void* executable_ = nullptr;
};

}  // namespace muster::test::gpu
