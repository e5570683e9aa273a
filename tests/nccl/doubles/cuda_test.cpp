#include <array>
#include <future>

#include <doctest/doctest.h>

#include "nccl/doubles/world.h"

TEST_SUITE_BEGIN("nccl_doubles_cuda");

namespace muster::test {
namespace {

/// Work of a stream that waits until it may go on.
class Gate {
 public:
  void enter(void* stream) { REQUIRE(cuda().launch(stream, wait, this) == 0); }
  void open() { opened_.set_value(); }

 private:
  static void wait(void* gate) { static_cast<Gate*>(gate)->opened_.get_future().wait(); }
  std::promise<void> opened_;
};

TEST_CASE("before cuInit nothing but the version is given") {
  cuda().reset();
  int number = 0;
  CHECK(cuda().device_count(&number) == 3);
  CHECK(cuda().synchronize() == 3);
  cuda().set_driver_version(12040);
  CHECK(cuda().driver_version(&number) == 0);
  CHECK(number == 12040);
  CHECK(cuda().init(0) == 0);
  CHECK(cuda().device_count(&number) == 0);
  CHECK(number == 8);
  cuda().reset();
}

TEST_CASE("without devices, or with a driver that fails, cuInit says so") {
  cuda().reset();
  cuda().set_devices(0);
  CHECK(cuda().init(0) == 100);
  cuda().reset();
  cuda().set_init_result(803);
  CHECK(cuda().init(0) == 803);
  const char* name = nullptr;
  CHECK(cuda().error_name(803, &name) == 0);
  CHECK(std::string(name) == "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
  cuda().reset();
}

TEST_CASE("devices have UUIDs of their own, which can be set") {
  REQUIRE(cuda().init(0) == 0);
  std::array<unsigned char, 16> first{};
  std::array<unsigned char, 16> second{};
  CHECK(cuda().device_uuid(first.data(), 0) == 0);
  CHECK(cuda().device_uuid(second.data(), 1) == 0);
  CHECK(first != second);
  cuda().set_uuid(1, first.data());
  CHECK(cuda().device_uuid(second.data(), 1) == 0);
  CHECK(first == second);
  CHECK(cuda().device_uuid(second.data(), 8) == 101);
  cuda().reset();
}

TEST_CASE("contexts are a stack of the thread's") {
  REQUIRE(cuda().init(0) == 0);
  int device = -1;
  CHECK(cuda().current_device(&device) == 201);
  {
    const CurrentDevice outer(2);
    const CurrentDevice inner(3);
    CHECK(cuda().current_device(&device) == 0);
    CHECK(device == 3);
    CHECK(cuda().alive("contexts") == 2);
    std::async(std::launch::async, [] { CHECK(cuda().synchronize() == 201); }).get();
    void* context = nullptr;
    CHECK(cuda().pop(&context) == 0);
    CHECK(cuda().current_device(&device) == 0);
    CHECK(device == 2);
    CHECK(cuda().push(context) == 0);
    CHECK(cuda().set_current(&device) == 201);
  }
  CHECK(cuda().alive("contexts") == 0);
  CHECK(cuda().pop(nullptr) == 201);
}

TEST_CASE("what is wrong is refused") {
  const CurrentDevice current(0);
  int local = 0;
  CHECK(cuda().synchronize_stream(&local) == 400);
  CHECK(cuda().query_event(&local) == 400);
  CHECK(cuda().free(1) == 1);
  CHECK(cuda().copy_in(reinterpret_cast<DevicePointer>(&local), &local, 4) == 1);
  DevicePointer memory = 0;
  CHECK(cuda().allocate(&memory, std::size_t{1} << 40) == 2);
  cuda().fail("cuMemAlloc_v2", 700);
  CHECK(cuda().allocate(&memory, 4) == 700);
  cuda().fail("cuMemAlloc_v2", 0);
  REQUIRE(cuda().allocate(&memory, 4) == 0);
  CHECK(cuda().copy_in(memory, "12345", 5) == 1);
  CHECK(cuda().free(memory) == 0);
}

TEST_CASE("a stream works in its order, and events tell how far it is") {
  const CleanDoubles clean;
  const CurrentDevice current(0);
  void* stream = nullptr;
  void* event = nullptr;
  DevicePointer memory = 0;
  REQUIRE(cuda().create_stream(&stream, 1) == 0);
  REQUIRE(cuda().create_event(&event, 0) == 0);
  REQUIRE(cuda().allocate(&memory, 4) == 0);
  CHECK(cuda().query_event(event) == 0);
  Gate gate;
  gate.enter(stream);
  const int in = 7;
  int out = 0;
  CHECK(cuda().copy_in_later(memory, &in, sizeof in, stream) == 0);
  CHECK(cuda().copy_out_later(&out, memory, sizeof out, stream) == 0);
  CHECK(cuda().record_event(event, stream) == 0);
  CHECK(cuda().query_event(event) == 600);
  CHECK(cuda().query_stream(stream) == 600);
  CHECK(cuda().set_bytes(memory, 1, 4) == 0);  // the null stream does not wait for this one
  CHECK(cuda().alive("queued") > 0);
  gate.open();
  CHECK(cuda().synchronize_event(event) == 0);
  CHECK(out == 7);
  CHECK(cuda().synchronize() == 0);
  CHECK(cuda().query_stream(stream) == 0);
  CHECK(cuda().free(memory) == 0);
  CHECK(cuda().destroy_event(event) == 0);
  CHECK(cuda().destroy_stream(stream) == 0);
  CHECK(cuda().destroy_stream(stream) == 400);
}

TEST_CASE("the null stream waits for a stream that is not non-blocking") {
  const CleanDoubles clean;
  const CurrentDevice current(0);
  void* stream = nullptr;
  REQUIRE(cuda().create_stream(&stream, 0) == 0);
  Gate gate;
  gate.enter(stream);
  DevicePointer memory = 0;
  REQUIRE(cuda().allocate(&memory, 4) == 0);
  void* event = nullptr;
  REQUIRE(cuda().create_event(&event, 0) == 0);
  CHECK(cuda().record_event(event, nullptr) == 0);
  CHECK(cuda().query_event(event) == 600);
  CHECK(cuda().destroy_stream(stream) == 0);  // what it has to do it still does
  gate.open();
  CHECK(cuda().synchronize_event(event) == 0);
  CHECK(cuda().destroy_event(event) == 0);
  CHECK(cuda().free(memory) == 0);
}

}  // namespace
}  // namespace muster::test
