#include "nccl/gpu/driver.h"

#include <dlfcn.h>

#include "support/let_pass.h"

namespace muster::test::gpu {
namespace {

constexpr int not_ready = 600;
constexpr const char* soname = "libcuda.so.1";

template <class Visit>
void visit_needed(Driver& driver, const Visit& visit) {
  visit(driver.init, "cuInit");
  visit(driver.version, "cuDriverGetVersion");
  visit(driver.device_count, "cuDeviceGetCount");
  visit(driver.device_get, "cuDeviceGet");
  visit(driver.device_name, "cuDeviceGetName");
  visit(driver.retain, "cuDevicePrimaryCtxRetain");
  visit(driver.push, "cuCtxPushCurrent_v2");
  visit(driver.pop, "cuCtxPopCurrent_v2");
  visit(driver.current, "cuCtxGetCurrent");
  visit(driver.allocate, "cuMemAlloc_v2");
  visit(driver.memory, "cuMemGetInfo_v2");
  visit(driver.copy_in, "cuMemcpyHtoD_v2");
  visit(driver.copy_out, "cuMemcpyDtoH_v2");
  visit(driver.set_bytes, "cuMemsetD8_v2");
  visit(driver.create_stream, "cuStreamCreate");
  visit(driver.destroy_stream, "cuStreamDestroy_v2");
  visit(driver.query, "cuStreamQuery");
  visit(driver.synchronize, "cuStreamSynchronize");
}

template <class AnyDriver, class Visit>
void visit_for_graphs(AnyDriver& driver, const Visit& visit) {
  visit(driver.begin_capture, "cuStreamBeginCapture_v2");
  visit(driver.end_capture, "cuStreamEndCapture");
  visit(driver.instantiate, "cuGraphInstantiateWithFlags");
  visit(driver.launch, "cuGraphLaunch");
  visit(driver.destroy_executable, "cuGraphExecDestroy");
  visit(driver.destroy_graph, "cuGraphDestroy");
}

Driver loaded(const std::string& path) {
  const char* const name = path.empty() ? soname : path.c_str();
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw NotRun(std::string("no CUDA driver: ") + ::dlerror());
  Driver driver;
  const auto find = [&](auto& function, const char* symbol) {
    using Function = std::remove_reference_t<decltype(function)>;
    function = reinterpret_cast<Function>(::dlsym(library, symbol));
  };
  visit_needed(driver, [&](auto& function, const char* symbol) {
    find(function, symbol);
    if (function == nullptr) throw NotRun(std::string(name) + " has no " + symbol);
  });
  visit_for_graphs(driver, find);
  if (const int result = driver.init(0); result != 0) {
    throw NotRun("the CUDA driver cannot be used: cuInit gave " + std::to_string(result));
  }
  return driver;
}

}  // namespace

const Driver& load_driver(const std::string& path) {
  static const Driver driver = loaded(path);
  return driver;
}

void must(int result, const char* function) {
  if (result != 0) throw Failure(std::string(function) + " gave " + std::to_string(result));
}

OnDevice::OnDevice(const Driver& driver, int device) : driver_(driver) {
  int handle = 0;
  must(driver_.device_get(&handle, device), "cuDeviceGet");
  must(driver_.retain(&context_, handle), "cuDevicePrimaryCtxRetain");
  must(driver_.push(context_), "cuCtxPushCurrent");
}

// The context itself stays: streams on which something hangs may still use it.
OnDevice::~OnDevice() {
  void* popped = nullptr;
  driver_.pop(&popped);
}

Memory::Memory(const Driver& driver, std::size_t bytes) : driver_(driver), bytes_(bytes) {
  const int result = driver_.allocate(&address_, bytes);
  if (result == 0) return;
  throw Failure("cuMemAlloc of " + std::to_string(bytes) + " bytes gave " + std::to_string(result));
}

void Memory::set_bytes(unsigned char value) {
  must(driver_.set_bytes(address_, value, bytes_), "cuMemsetD8");
  settle();
}

void Memory::settle() const { must(driver_.synchronize(nullptr), "cuStreamSynchronize"); }

Stream::Stream(const Driver& driver) : driver_(driver) {
  constexpr unsigned not_behind_the_default_stream = 1;
  must(driver_.create_stream(&handle_, not_behind_the_default_stream), "cuStreamCreate");
}

Stream::~Stream() {
  if (driver_.query(handle_) == 0) driver_.destroy_stream(handle_);
}

bool Stream::is_idle() const {
  const int result = driver_.query(handle_);
  if (result != 0 && result != not_ready) must(result, "cuStreamQuery");
  return result == 0;
}

bool Stream::is_idle_within(std::chrono::milliseconds time) const {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!is_idle()) {
    if (std::chrono::steady_clock::now() > until) return false;
    let_pass(std::chrono::microseconds(50));
  }
  return true;
}

void Stream::wait(std::chrono::milliseconds time) const {
  if (is_idle_within(time)) return;
  throw Failure("the stream was not idle after " + std::to_string(time.count()) + " ms");
}

Graph::Graph(const Driver& driver, const Stream& stream, Mode mode,
             const std::function<void()>& work)
    : driver_(driver) {
  visit_for_graphs(driver, [](auto& function, const char* symbol) {
    if (function == nullptr) throw NotRun(std::string("the driver has no ") + symbol);
  });
  must(driver_.begin_capture(stream.handle(), static_cast<int>(mode)), "cuStreamBeginCapture");
  void* graph = nullptr;
  try {
    work();
  } catch (...) {
    if (driver_.end_capture(stream.handle(), &graph) == 0) driver_.destroy_graph(graph);
    throw;
  }
  must(driver_.end_capture(stream.handle(), &graph), "cuStreamEndCapture");
  const int result = driver_.instantiate(&executable_, graph, 0);
  driver_.destroy_graph(graph);
  must(result, "cuGraphInstantiate");
}

Graph::~Graph() { driver_.destroy_executable(executable_); }

void Graph::launch(const Stream& stream) const {
  must(driver_.launch(executable_, stream.handle()), "cuGraphLaunch");
}

}  // namespace muster::test::gpu
