#include <utility>

#include "nccl/doubles/cuda_state.h"
#include "nccl/doubles/exported.h"

// Of the driver's interface: streams, events, functions of the host, and what errors are called.

using namespace cuda_double;

namespace {

constexpr unsigned non_blocking = 1;  // CU_STREAM_NON_BLOCKING

template <class Work>
int with_stream(const char* function, void* handle, Work work) {
  if (const int result = state().refusal(function)) return result;
  const Found found = find_stream(handle);
  return found.result == success ? work(found.entry) : found.result;
}

template <class Work>
int with_event(const char* function, void* handle, Work work) {
  if (const int result = state().refusal(function)) return result;
  Event event;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().events.find(handle);
    if (found == state().events.end()) return invalid_handle;
    event = *found->second;
  }
  return work(event);
}

struct Text {
  int result;
  const char* name;
  const char* words;
};
constexpr Text texts[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {35, "CUDA_ERROR_INSUFFICIENT_DRIVER", "CUDA driver version is insufficient"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

int find_text(int result, const char* Text::*which, const char** text) {
  if (text == nullptr) return invalid_value;
  for (const Text& one : texts) {
    if (one.result != result) continue;
    *text = one.*which;
    return success;
  }
  *text = nullptr;
  return invalid_value;
}

}  // namespace

DOUBLE_EXPORT int cuStreamCreate(void** handle, unsigned flags) {
  if (const int result = state().refusal("cuStreamCreate")) return result;
  const Current current = current_context();
  if (current.context == nullptr) return current.result;
  if (handle == nullptr || flags > non_blocking) return invalid_value;
  auto stream = Stream::start();
  *handle = stream.get();
  const std::lock_guard lock(state().mutex);
  state().streams[*handle] = {std::move(stream), current.context, flags != non_blocking, nullptr};
  return success;
}

// What it still has to do it does; that is not waited for.
DOUBLE_EXPORT int cuStreamDestroy_v2(void* handle) {
  if (const int result = state().refusal("cuStreamDestroy_v2")) return result;
  const std::lock_guard lock(state().mutex);
  const auto found = state().streams.find(handle);
  if (found == state().streams.end()) return invalid_handle;
  found->second.stream->close();
  state().streams.erase(found);
  return success;
}

DOUBLE_EXPORT int cuStreamSynchronize(void* handle) {
  return with_stream("cuStreamSynchronize", handle, [](const StreamEntry& entry) {
    if (entry.capture != nullptr) return capture_unsupported;
    entry.stream->wait();
    return success;
  });
}

DOUBLE_EXPORT int cuStreamQuery(void* handle) {
  return with_stream("cuStreamQuery", handle, [](const StreamEntry& entry) {
    if (entry.capture != nullptr) return capture_unsupported;
    return entry.stream->has_done(entry.stream->last_number()) ? success : not_ready;
  });
}

DOUBLE_EXPORT int cuLaunchHostFunc(void* handle, void (*function)(void*), void* argument) {
  return with_stream("cuLaunchHostFunc", handle, [&](const StreamEntry& entry) {
    if (function == nullptr) return invalid_value;
    enqueue(entry, [=] { function(argument); });
    return success;
  });
}

DOUBLE_EXPORT int cuEventCreate(void** handle, unsigned) {
  if (const int result = state().refusal("cuEventCreate")) return result;
  const Current current = current_context();
  if (current.context == nullptr) return current.result;
  if (handle == nullptr) return invalid_value;
  auto event = std::make_shared<Event>();
  *handle = event.get();
  const std::lock_guard lock(state().mutex);
  state().events[*handle] = std::move(event);
  return success;
}

DOUBLE_EXPORT int cuEventRecord(void* handle, void* stream) {
  return with_event("cuEventRecord", handle, [&](const Event&) {
    const Found found = find_stream(stream);
    if (found.result != success) return found.result;
    const std::uint64_t number = enqueue(found.entry, [] {});
    const std::lock_guard lock(state().mutex);
    *state().events.at(handle) = {found.entry.stream, number};
    return static_cast<int>(success);
  });
}

DOUBLE_EXPORT int cuEventQuery(void* handle) {
  return with_event("cuEventQuery", handle, [](const Event& event) {
    return event.stream == nullptr || event.stream->has_done(event.number) ? success : not_ready;
  });
}

DOUBLE_EXPORT int cuEventSynchronize(void* handle) {
  return with_event("cuEventSynchronize", handle, [](const Event& event) {
    if (event.stream != nullptr) event.stream->wait_for(event.number);
    return success;
  });
}

DOUBLE_EXPORT int cuEventDestroy_v2(void* handle) {
  if (const int result = state().refusal("cuEventDestroy_v2")) return result;
  const std::lock_guard lock(state().mutex);
  return state().events.erase(handle) == 0 ? invalid_handle : success;
}

DOUBLE_EXPORT int cuGetErrorName(int result, const char** name) {
  return find_text(result, &Text::name, name);
}

DOUBLE_EXPORT int cuGetErrorString(int result, const char** text) {
  return find_text(result, &Text::words, text);
}
