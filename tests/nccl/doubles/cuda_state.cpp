#include "nccl/doubles/cuda_state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <utility>

#include "nccl/doubles/cuda_control.h"
#include "nccl/doubles/exported.h"

namespace cuda_double {
namespace {

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

long number_of(const char* name, long otherwise) {
  const std::string value = setting(name);
  return value.empty() ? otherwise : std::strtol(value.c_str(), nullptr, 0);
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

/// The same in every process: a device is one, whoever sees it.
Uuid default_uuid(int device) {
  Uuid uuid{};
  std::memcpy(uuid.data(), "cuda double", 11);
  uuid.back() = static_cast<unsigned char>(device);
  return uuid;
}

Uuid parse_uuid(const std::string& digits) {
  Uuid uuid{};
  for (std::size_t i = 0; i < uuid.size() && 2 * i + 2 <= digits.size(); ++i) {
    uuid[i] = static_cast<unsigned char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  }
  return uuid;
}

}  // namespace

State& state() {
  static State* const one = [] {
    auto* const made = new State;  // never destroyed: streams' threads use it to the end
    made->configure_from_environment();
    return made;
  }();
  return *one;
}

void State::configure_from_environment() {
  is_initialized = false;
  failures.clear();
  devices.clear();
  set_devices(static_cast<int>(number_of("CUDA_DOUBLE_DEVICES", 1)));
  const auto uuids = parts_of(setting("CUDA_DOUBLE_UUIDS"));
  for (std::size_t i = 0; i < std::min(uuids.size(), devices.size()); ++i) {
    devices[i]->uuid = parse_uuid(uuids[i]);
  }
  driver_version = static_cast<int>(number_of("CUDA_DOUBLE_DRIVER_VERSION", 13000));
  init_result = static_cast<int>(number_of("CUDA_DOUBLE_INIT_RESULT", success));
  memory_bytes = static_cast<std::size_t>(number_of("CUDA_DOUBLE_MEMORY_BYTES", 1L << 30));
  for (const std::string& failure : parts_of(setting("CUDA_DOUBLE_FAIL"))) {
    const std::size_t equals = failure.find('=');
    if (equals == std::string::npos) continue;
    failures[failure.substr(0, equals)] = std::atoi(failure.c_str() + equals + 1);
  }
}

void State::set_devices(int count) {
  devices.resize(std::min(devices.size(), static_cast<std::size_t>(count)));
  while (devices.size() < static_cast<std::size_t>(count)) {
    auto device = std::make_unique<Device>();
    device->context.device = static_cast<int>(devices.size());
    device->uuid = default_uuid(device->context.device);
    devices.push_back(std::move(device));
  }
}

int State::refusal(const char* function) {
  const std::lock_guard lock(mutex);
  const auto failure = failures.find(function);
  if (failure != failures.end()) return failure->second;
  return is_initialized ? success : not_initialized;
}

bool State::knows(const Context* context) const {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const auto& device) { return &device->context == context; });
}

bool State::is_device_memory(std::uintptr_t first, std::size_t size_bytes) const {
  auto next = allocations.upper_bound(first);
  if (next == allocations.begin()) return false;
  const auto& [base, allocation] = *--next;
  const std::size_t offset = first - base;
  return offset <= allocation.size_bytes && size_bytes <= allocation.size_bytes - offset;
}

std::optional<int> State::device_of(std::uintptr_t address) const {
  if (!is_device_memory(address, 1)) return std::nullopt;
  return std::prev(allocations.upper_bound(address))->second.device;
}

std::size_t State::allocated_bytes(int device) const {
  std::size_t sum = 0;
  for (const auto& [base, allocation] : allocations) {
    if (allocation.device == device) sum += allocation.size_bytes;
  }
  return sum;
}

std::vector<Context*>& context_stack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

Current current_context() {
  if (context_stack().empty()) return {nullptr, invalid_context};
  Context* const context = context_stack().back();
  const std::lock_guard lock(state().mutex);
  if (context->retained == 0) return {nullptr, context_is_destroyed};
  return {context, success};
}

Found find_stream(void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value <= 1) {
    const Current current = current_context();
    if (current.context == nullptr) return {{}, current.result};
    const std::lock_guard lock(state().mutex);
    auto& stream = current.context->null_stream;
    if (stream == nullptr) stream = Stream::start();
    return {{stream, current.context, true, nullptr}, success};
  }
  const std::lock_guard lock(state().mutex);
  const auto found = state().streams.find(handle);
  if (found == state().streams.end()) return {{}, invalid_handle};
  return {found->second, success};
}

std::uint64_t enqueue(const StreamEntry& entry, Stream::Work work) {
  const std::lock_guard lock(state().mutex);  // what is enqueued before what is one order for all
  if (entry.capture != nullptr) {
    entry.capture->pieces.push_back(std::move(work));
    return 0;
  }
  std::vector<std::pair<std::shared_ptr<Stream>, std::uint64_t>> earlier;
  const auto wait_for_all_of = [&](const std::shared_ptr<Stream>& stream) {
    const std::uint64_t last = stream->last_number();
    if (!stream->has_done(last)) earlier.emplace_back(stream, last);
  };
  const auto& null_stream = entry.context->null_stream;
  if (entry.stream == null_stream) {
    for (const auto& [handle, other] : state().streams) {
      if (other.context == entry.context && other.is_blocking) wait_for_all_of(other.stream);
    }
  } else if (entry.is_blocking && null_stream != nullptr) {
    wait_for_all_of(null_stream);
  }
  return entry.stream->enqueue([earlier = std::move(earlier), work = std::move(work)] {
    for (const auto& [stream, number] : earlier) stream->wait_for(number);
    work();
  });
}

void synchronize(const Context* context) {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(state().mutex);
    if (context->null_stream != nullptr) streams.push_back(context->null_stream);
    for (const auto& [handle, entry] : state().streams) {
      if (entry.context == context) streams.push_back(entry.stream);
    }
  }
  for (const auto& stream : streams) stream->wait();
}

}  // namespace cuda_double

using cuda_double::state;

DOUBLE_EXPORT void cuda_double_reset() {
  const std::lock_guard lock(state().mutex);
  for (const auto& device : state().devices) {
    if (device->context.null_stream != nullptr) device->context.null_stream->close();
  }
  cuda_double::context_stack().clear();
  state().configure_from_environment();
}

DOUBLE_EXPORT void cuda_double_set_devices(int count) {
  const std::lock_guard lock(state().mutex);
  state().set_devices(count);
}

DOUBLE_EXPORT void cuda_double_set_uuid(int device, const unsigned char* uuid) {
  const std::lock_guard lock(state().mutex);
  auto& own = state().devices.at(static_cast<std::size_t>(device))->uuid;
  std::memcpy(own.data(), uuid, own.size());
}

DOUBLE_EXPORT void cuda_double_set_driver_version(int version) {
  const std::lock_guard lock(state().mutex);
  state().driver_version = version;
}

DOUBLE_EXPORT void cuda_double_set_init_result(int result) {
  const std::lock_guard lock(state().mutex);
  state().init_result = result;
  if (result != cuda_double::success) state().is_initialized = false;
}

DOUBLE_EXPORT void cuda_double_fail(const char* function, int result) {
  const std::lock_guard lock(state().mutex);
  if (result == cuda_double::success) {
    state().failures.erase(function);
  } else {
    state().failures[function] = result;
  }
}

DOUBLE_EXPORT long cuda_double_alive(const char* kind) {
  const std::string name = kind;
  const std::lock_guard lock(state().mutex);
  if (name == "streams") return static_cast<long>(state().streams.size());
  if (name == "events") return static_cast<long>(state().events.size());
  if (name == "allocations") return static_cast<long>(state().allocations.size());
  if (name == "threads") return cuda_double::stream_counts().threads;
  if (name == "queued") return cuda_double::stream_counts().queued;
  if (name != "contexts") return -1;
  return std::count_if(state().devices.begin(), state().devices.end(),
                       [](const auto& device) { return device->context.retained > 0; });
}
