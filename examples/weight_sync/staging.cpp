#include "weight_sync/staging.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace weight_sync {
namespace {

using muster::Result;

class HostStaging : public Staging {
 public:
  explicit HostStaging(std::size_t bytes)
      : buffers_{std::vector<char>(bytes), std::vector<char>(bytes)} {}

  void* at(int side) override { return buffer(side).data(); }
  muster::nccl::CudaStream stream(int) override { return nullptr; }
  Result<void> fill(int side, const char* from, std::size_t bytes) override {
    std::memcpy(buffer(side).data(), from, bytes);
    return {};
  }
  Result<void> empty(int side, char* to, std::size_t bytes) override {
    std::memcpy(to, buffer(side).data(), bytes);
    return {};
  }
  Result<bool> is_done(int) override { return true; }
  Result<void> wait(int) override { return {}; }

 private:
  std::vector<char>& buffer(int side) { return buffers_[static_cast<std::size_t>(side)]; }
  std::array<std::vector<char>, 2> buffers_;
};

/// The functions of the CUDA driver that are needed here, by their names in libcuda.so.1.
struct Driver {
  int (*init)(unsigned flags);
  int (*device_get)(int* device, int ordinal);
  int (*retain)(void** context, int device);
  int (*release)(int device);
  int (*push)(void* context);
  int (*pop)(void** context);
  int (*allocate)(std::uintptr_t* address, std::size_t bytes);
  int (*free)(std::uintptr_t address);
  int (*copy_in)(std::uintptr_t to, const void* from, std::size_t bytes);
  int (*copy_out)(void* to, std::uintptr_t from, std::size_t bytes);
  int (*create_stream)(void** stream, unsigned flags);
  int (*query)(void* stream);
  int (*synchronize)(void* stream);
  int (*destroy_stream)(void* stream);
};

muster::Error failure(const std::string& what) {
  muster::Error error;
  error.code = muster::ErrorCode::no_device;
  error.operation = "staging";
  error.detail = what;
  return error;
}

Result<void> done(int result, const char* function) {
  if (result == 0) return {};
  return failure(std::string(function) + " gave " + std::to_string(result));
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<Driver> load_driver() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return failure(::dlerror());
  Driver driver{};
  const bool has_all = find(library, "cuInit", driver.init) &&
                       find(library, "cuDeviceGet", driver.device_get) &&
                       find(library, "cuDevicePrimaryCtxRetain", driver.retain) &&
                       find(library, "cuDevicePrimaryCtxRelease_v2", driver.release) &&
                       find(library, "cuCtxPushCurrent_v2", driver.push) &&
                       find(library, "cuCtxPopCurrent_v2", driver.pop) &&
                       find(library, "cuMemAlloc_v2", driver.allocate) &&
                       find(library, "cuMemFree_v2", driver.free) &&
                       find(library, "cuMemcpyHtoD_v2", driver.copy_in) &&
                       find(library, "cuMemcpyDtoH_v2", driver.copy_out) &&
                       find(library, "cuStreamCreate", driver.create_stream) &&
                       find(library, "cuStreamQuery", driver.query) &&
                       find(library, "cuStreamSynchronize", driver.synchronize) &&
                       find(library, "cuStreamDestroy_v2", driver.destroy_stream);
  if (!has_all) return failure("libcuda.so.1 lacks a function");
  return driver;
}

class CudaStaging : public Staging {
 public:
  static Result<std::unique_ptr<Staging>> make(const Driver& driver, int ordinal,
                                               std::size_t bytes) {
    std::unique_ptr<CudaStaging> staging(new CudaStaging(driver));
    if (auto made = staging->begin(ordinal, bytes); !made) return std::move(made).error();
    return std::unique_ptr<Staging>(std::move(staging));
  }
  ~CudaStaging() override {
    if (context_ == nullptr) return;
    {
      const Current current(*this);
      for (Side& side : sides_) {
        if (side.stream != nullptr) driver_.destroy_stream(side.stream);
        if (side.address != 0) driver_.free(side.address);
      }
    }
    driver_.release(device_);
  }

  void* at(int side) override { return reinterpret_cast<void*>(of(side).address); }
  muster::nccl::CudaStream stream(int side) override { return of(side).stream; }
  Result<void> fill(int side, const char* from, std::size_t bytes) override {
    const Current current(*this);
    return done(driver_.copy_in(of(side).address, from, bytes), "cuMemcpyHtoD");
  }
  Result<void> empty(int side, char* to, std::size_t bytes) override {
    const Current current(*this);
    return done(driver_.copy_out(to, of(side).address, bytes), "cuMemcpyDtoH");
  }
  Result<bool> is_done(int side) override {
    constexpr int not_ready = 600;
    const Current current(*this);
    const int result = driver_.query(of(side).stream);
    if (result == not_ready) return false;
    if (auto is = done(result, "cuStreamQuery"); !is) return std::move(is).error();
    return true;
  }
  Result<void> wait(int side) override {
    const Current current(*this);
    return done(driver_.synchronize(of(side).stream), "cuStreamSynchronize");
  }

 private:
  struct Side {
    std::uintptr_t address = 0;
    void* stream = nullptr;
  };
  /// The device is the calling thread's current one while this lives.
  class Current {
   public:
    explicit Current(const CudaStaging& staging) : driver_(staging.driver_) {
      driver_.push(staging.context_);
    }
    ~Current() {
      void* popped = nullptr;
      driver_.pop(&popped);
    }

   private:
    const Driver& driver_;
  };

  explicit CudaStaging(const Driver& driver) : driver_(driver) {}

  Result<void> begin(int ordinal, std::size_t bytes) {
    if (auto is = done(driver_.init(0), "cuInit"); !is) return is;
    if (auto is = done(driver_.device_get(&device_, ordinal), "cuDeviceGet"); !is) return is;
    if (auto is = done(driver_.retain(&context_, device_), "cuDevicePrimaryCtxRetain"); !is)
      return is;
    const Current current(*this);
    for (Side& side : sides_) {
      if (auto is = done(driver_.allocate(&side.address, bytes), "cuMemAlloc"); !is) return is;
      constexpr unsigned not_behind_the_default_stream = 1;
      if (auto is = done(driver_.create_stream(&side.stream, not_behind_the_default_stream),
                         "cuStreamCreate");
          !is) {
        return is;
      }
    }
    return {};
  }
  Side& of(int side) { return sides_[static_cast<std::size_t>(side)]; }

  const Driver driver_;
  int device_ = 0;
  void* context_ = nullptr;
  std::array<Side, 2> sides_;
};

}  // namespace

std::unique_ptr<Staging> host_staging(std::size_t bytes) {
  return std::make_unique<HostStaging>(bytes);
}

Result<std::unique_ptr<Staging>> cuda_staging(int device, std::size_t bytes) {
  const auto driver = load_driver();
  if (!driver) return driver.error();
  return CudaStaging::make(*driver, device, bytes);
}

}  // namespace weight_sync
