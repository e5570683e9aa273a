#include <utility>

#include "nccl/doubles/cuda_state.h"
#include "nccl/doubles/exported.h"

// Of the driver's interface: graphs. While a stream is captured, what is put on it goes into a
// graph in place of the stream; all modes are the same here. A graph is a list: nothing of it runs
// at the same time.

using namespace cuda_double;

namespace {

/// `work` with the entry of a stream itself, not of the null stream, which cannot be captured.
template <class Work>
int with_entry(const char* function, void* handle, Work work) {
  if (const int result = state().refusal(function)) return result;
  const std::lock_guard lock(state().mutex);
  const auto found = state().streams.find(handle);
  return found == state().streams.end() ? capture_unsupported : work(found->second);
}

/// The lock is held.
void* keep(std::shared_ptr<Graph> graph) {
  void* const handle = graph.get();
  state().graphs[handle] = std::move(graph);
  return handle;
}

template <class Work>
int with_graph(const char* function, void* handle, Work work) {
  if (const int result = state().refusal(function)) return result;
  std::shared_ptr<Graph> graph;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().graphs.find(handle);
    if (found == state().graphs.end()) return invalid_value;
    graph = found->second;
  }
  return work(*graph);
}

int destroy(const char* function, void* handle) {
  if (const int result = state().refusal(function)) return result;
  const std::lock_guard lock(state().mutex);
  return state().graphs.erase(handle) == 0 ? invalid_value : success;
}

}  // namespace

DOUBLE_EXPORT int cuStreamBeginCapture_v2(void* handle, int mode) {
  return with_entry("cuStreamBeginCapture_v2", handle, [&](StreamEntry& entry) {
    constexpr int relaxed = 2;
    if (mode < 0 || mode > relaxed) return invalid_value;
    if (entry.capture != nullptr) return illegal_state;
    entry.capture = std::make_shared<Graph>();
    return success;
  });
}

DOUBLE_EXPORT int cuStreamEndCapture(void* handle, void** graph) {
  return with_entry("cuStreamEndCapture", handle, [&](StreamEntry& entry) {
    if (graph == nullptr) return invalid_value;
    if (entry.capture == nullptr) return illegal_state;
    *graph = keep(std::exchange(entry.capture, nullptr));
    return success;
  });
}

DOUBLE_EXPORT int cuStreamIsCapturing(void* handle, int* status) {
  if (const int result = state().refusal("cuStreamIsCapturing")) return result;
  const Found found = find_stream(handle);
  if (found.result != success) return found.result;
  if (status == nullptr) return invalid_value;
  *status = found.entry.capture == nullptr ? 0 : 1;
  return success;
}

DOUBLE_EXPORT int cuGraphInstantiateWithFlags(void** executable, void* handle,
                                              unsigned long long flags) {
  return with_graph("cuGraphInstantiateWithFlags", handle, [&](const Graph& graph) {
    if (executable == nullptr || flags != 0) return invalid_value;
    const std::lock_guard lock(state().mutex);
    *executable = keep(std::make_shared<Graph>(graph));
    return success;
  });
}

DOUBLE_EXPORT int cuGraphLaunch(void* executable, void* stream) {
  return with_graph("cuGraphLaunch", executable, [&](const Graph& graph) {
    const Found found = find_stream(stream);
    if (found.result != success) return found.result;
    for (const Stream::Work& piece : graph.pieces) enqueue(found.entry, piece);
    return static_cast<int>(success);
  });
}

DOUBLE_EXPORT int cuGraphDestroy(void* graph) { return destroy("cuGraphDestroy", graph); }

DOUBLE_EXPORT int cuGraphExecDestroy(void* executable) {
  return destroy("cuGraphExecDestroy", executable);
}
