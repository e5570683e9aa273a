#include <array>
#include <cstdlib>
#include <thread>

#include <doctest/doctest.h>

#include "nccl/doubles/world.h"

TEST_SUITE_BEGIN("nccl_doubles_graph");

namespace muster::test {
namespace {

/// What the driver has for graphs.
struct GraphFunctions {
  int (*begin_capture)(void* stream, int mode) = cuda().in["cuStreamBeginCapture_v2"];
  int (*end_capture)(void* stream, void** graph) = cuda().in["cuStreamEndCapture"];
  int (*is_capturing)(void* stream, int* status) = cuda().in["cuStreamIsCapturing"];
  int (*instantiate)(void** executable, void* graph,
                     unsigned long long flags) = cuda().in["cuGraphInstantiateWithFlags"];
  int (*launch)(void* executable, void* stream) = cuda().in["cuGraphLaunch"];
  int (*destroy)(void* graph) = cuda().in["cuGraphDestroy"];
  int (*destroy_executable)(void* executable) = cuda().in["cuGraphExecDestroy"];
};

constexpr int capture_unsupported = 900;
constexpr int illegal_state = 401;
constexpr int relaxed = 2;

void count_up(void* count) { ++*static_cast<int*>(count); }

/// From a stream that captures.
void* executable_of(const GraphFunctions& graphs, void* stream) {
  void* graph = nullptr;
  void* executable = nullptr;
  REQUIRE(graphs.end_capture(stream, &graph) == 0);
  REQUIRE(graphs.instantiate(&executable, graph, 0) == 0);
  CHECK(graphs.destroy(graph) == 0);
  return executable;
}

TEST_CASE("what is captured runs when its graph is launched, each time, and not before") {
  cuda().reset();
  const CurrentDevice current(0);
  const GraphFunctions graphs;
  void* stream = nullptr;
  REQUIRE(cuda().create_stream(&stream, 1) == 0);
  int count = 0;
  int status = -1;
  CHECK(graphs.begin_capture(nullptr, relaxed) == capture_unsupported);
  CHECK(graphs.begin_capture(stream, 3) == 1);
  REQUIRE(graphs.begin_capture(stream, relaxed) == 0);
  CHECK(graphs.begin_capture(stream, relaxed) == illegal_state);
  CHECK(graphs.is_capturing(stream, &status) == 0);
  CHECK(status == 1);
  CHECK(cuda().launch(stream, count_up, &count) == 0);
  CHECK(cuda().launch(stream, count_up, &count) == 0);
  CHECK(cuda().query_stream(stream) == capture_unsupported);
  CHECK(cuda().synchronize_stream(stream) == capture_unsupported);
  void* const executable = executable_of(graphs, stream);
  void* none = nullptr;
  CHECK(graphs.end_capture(stream, &none) == illegal_state);
  CHECK(cuda().synchronize_stream(stream) == 0);
  CHECK(count == 0);
  for (int time = 0; time < 3; ++time) CHECK(graphs.launch(executable, stream) == 0);
  CHECK(cuda().synchronize_stream(stream) == 0);
  CHECK(count == 6);
  CHECK(graphs.destroy_executable(executable) == 0);
  CHECK(graphs.launch(executable, stream) == 1);
  CHECK(cuda().destroy_stream(stream) == 0);
}

TEST_CASE("a collective that is captured is done with each launch, between others") {
  const CleanDoubles clean;
  World world(2);
  world.start();
  const GraphFunctions graphs;
  std::array<int, 2> values{};
  std::array<int, 2> sums{};
  std::array<void*, 2> executables{};
  const auto reduce = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    CHECK(begins(nccl().all_reduce(&values[index], &sums[index], 1, int32_type, 0, world[rank],
                                   world.stream(rank))));
    await([&] { return async_error(world[rank]) != 7; });
  };
  for (int rank = 0; rank < 2; ++rank) {
    REQUIRE(graphs.begin_capture(world.stream(rank), relaxed) == 0);
  }
  std::thread other([&] { reduce(1); });  // they connect
  reduce(0);
  other.join();
  for (const std::size_t rank : {0U, 1U}) {
    executables[rank] = executable_of(graphs, world.stream(static_cast<int>(rank)));
  }
  for (int time = 1; time <= 3; ++time) {
    values = {time, 10 * time};
    sums = {0, 0};
    for (int rank = 0; rank < 2; ++rank) {
      CHECK(graphs.launch(executables[static_cast<std::size_t>(rank)], world.stream(rank)) == 0);
    }
    world.synchronize();
    CHECK(sums == std::array<int, 2>{11 * time, 11 * time});
    for (int rank = 0; rank < 2; ++rank) reduce(rank);
    world.synchronize();
  }
  for (void* const executable : executables) CHECK(graphs.destroy_executable(executable) == 0);
}

TEST_CASE("with NCCL_CHECK_POINTERS memory of the host is refused") {
  const CleanDoubles clean;
  World world(1);
  world.start();
  const CurrentDevice current(0);
  DevicePointer memory = 0;
  REQUIRE(cuda().allocate(&memory, sizeof(int)) == 0);
  int value = 1;
  auto* const own = reinterpret_cast<void*>(memory);
  const auto reduce = [&](const void* from, void* to) {
    return nccl().all_reduce(from, to, 1, int32_type, 0, world[0], world.stream(0));
  };
  CHECK(begins(reduce(&value, &value)));
  world.synchronize();
  ::setenv("NCCL_CHECK_POINTERS", "1", 1);
  CHECK(begins(reduce(own, own)));
  CHECK(reduce(own, &value) == 4);
  ::unsetenv("NCCL_CHECK_POINTERS");
  world.synchronize();
  CHECK(cuda().free(memory) == 0);
}

}  // namespace
}  // namespace muster::test
