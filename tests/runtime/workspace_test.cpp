#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "muster/shared.h"
#include "runtime/shared_support.h"
#include "support/ranks.h"

// A folder of states: what a reader gets, and when it does not.

namespace muster::test {
namespace {

SharedReadOptions exactly(std::uint64_t generation, Duration timeout = 0s) {
  SharedReadOptions options;
  options.generation_min = generation;
  options.generation_max = generation;
  options.timeout = timeout;
  return options;
}

SharedReadOptions at_least(std::uint64_t generation, Duration timeout = 0s) {
  SharedReadOptions options;
  options.generation_min = generation;
  options.timeout = timeout;
  return options;
}

SharedStateView config_of(std::string_view config) {
  SharedStateView state;
  state.config = config;
  return state;
}

TEST_CASE("a workspace without a folder says that it is not initialized") {
  for (SharedWorkspace workspace : {SharedWorkspace(), SharedWorkspace(std::nullopt, 3)}) {
    CHECK_FALSE(workspace.is_initialized());
    CHECK(must_fail(workspace.write(1, {})).code == ErrorCode::not_initialized);
    CHECK(must_fail(workspace.read(0)).code == ErrorCode::not_initialized);
    CHECK(must_fail(workspace.remove()).code == ErrorCode::not_initialized);
    CHECK(workspace.path_of(0).empty());
  }
}

TEST_CASE("what a rank writes others read, in a folder that the first one makes") {
  const OwnFolder folder;
  const std::string path = folder.path() + "/a/b";
  SharedWorkspace writer(path, 1);
  const SharedWorkspace reader(path, 0);
  CHECK(must_fail(reader.read(1)).code == ErrorCode::not_found);
  std::vector<float> numbers = {1, 2, 3};
  SharedStateView state = config_of("{\"layers\": 2}");
  state.tensors = {{"w", tensor_of(numbers)}};
  must(writer.write(5, state));
  numbers = {};
  const SharedState read = must(reader.read(1));
  CHECK(read.config == "{\"layers\": 2}");
  REQUIRE(read.tensors.size() == 1);
  CHECK(read.tensors[0].name == "w");
  const TensorView view = read.view().tensors[0].tensor;
  CHECK(std::vector<float>(static_cast<float*>(view.data), static_cast<float*>(view.data) + 3) ==
        std::vector<float>{1, 2, 3});
  CHECK(entries_of(path) == std::set<std::string>{"rank_1.state"});
  must(writer.write(6, config_of("second")));
  CHECK(must(reader.read(1)).config == "second");
  must(writer.remove());
  must(writer.remove());
  CHECK(must_fail(reader.read(1)).code == ErrorCode::not_found);
  CHECK(entries_of(path).empty());
}

TEST_CASE("M7: a stale file of an earlier run is never returned") {
  const OwnFolder folder;
  SharedWorkspace workspace(folder.path(), 0);
  must(workspace.write(10, config_of("old")));
  const Error error = must_fail(workspace.read(0, at_least(11)));
  CHECK(error.code == ErrorCode::not_found);
  CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
  CHECK(must_fail(workspace.read(0, exactly(11, 50ms))).code == ErrorCode::not_found);
  CHECK(must_fail(workspace.read(0, exactly(9))).code == ErrorCode::not_found);
  CHECK(must(workspace.read(0, exactly(10))).config == "old");
  must(workspace.write(12, config_of("new")));
  CHECK(must(workspace.read(0, at_least(11))).config == "new");
}

TEST_CASE("M7: a reader that starts before the writer waits for it") {
  const OwnFolder folder;
  const std::string path = folder.path() + "/later";
  std::atomic<bool> has_begun = false;
  std::thread reading([&] {
    const SharedWorkspace reader(path, 0);
    has_begun = true;
    CHECK(must(reader.read(1, at_least(3, 20s))).config == "there");
  });
  await([&] { return has_begun.load(); });
  SharedWorkspace writer(path, 1);
  must(writer.write(2, config_of("too old")));
  must(writer.write(3, config_of("there")));
  reading.join();
}

TEST_CASE("M7: a truncated or damaged file is an error that names file and rank") {
  const OwnFolder folder;
  SharedWorkspace workspace(folder.path(), 4);
  must(workspace.write(1, config_of(std::string(1000, 'x'))));
  const std::string path = workspace.path_of(4);
  const auto size = std::filesystem::file_size(path);
  const auto expect_damage = [&] {
    const Error error = must_fail(workspace.read(4));
    CHECK(error.code == ErrorCode::codec_failure);
    CHECK(error.rank_ranges == std::vector<RankRange>{{4, 4}});
    CHECK(error.detail.find(path) != std::string::npos);
  };
  for (const std::uintmax_t left :
       {size - 1, size / 2, std::uintmax_t{64}, std::uintmax_t{10}, std::uintmax_t{0}}) {
    must(workspace.write(1, config_of(std::string(1000, 'x'))));
    std::filesystem::resize_file(path, left);
    expect_damage();
  }
  must(workspace.write(1, config_of(std::string(1000, 'x'))));
  std::fstream(path, std::ios::in | std::ios::out).seekp(500).put('y');
  expect_damage();
  // What claims to be as large as no memory is.
  must(workspace.write(1, config_of("x")));
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  expect_damage();
  must(workspace.remove());
  std::filesystem::create_directory(path);
  expect_damage();
}

TEST_CASE("a reader beside a writer gets whole states only") {
  const OwnFolder folder;
  constexpr std::uint64_t last = 300;
  std::thread writing([&] {
    SharedWorkspace writer(folder.path(), 0);
    for (std::uint64_t generation = 1; generation <= last; ++generation) {
      std::vector<std::uint64_t> numbers(1 + generation % 7 * 1000, generation);
      SharedStateView state;
      state.tensors = {{"numbers", tensor_of(numbers)}};
      must(writer.write(generation, state));
    }
  });
  const SharedWorkspace reader(folder.path(), 1);
  std::uint64_t seen = 0;
  while (seen < last) {
    const SharedState state = must(reader.read(0, at_least(seen + 1, 20s)));
    const TensorView view = state.tensors[0].tensor.view();
    const Span<const std::uint64_t> numbers(static_cast<const std::uint64_t*>(view.data),
                                            view.element_count());
    CHECK(numbers[0] > seen);
    seen = numbers[0];
    CHECK(numbers.size() == 1 + seen % 7 * 1000);
    CHECK(numbers[numbers.size() - 1] == seen);
  }
  writing.join();
  CHECK(entries_of(folder.path()) == std::set<std::string>{"rank_0.state"});
}

TEST_CASE("a workspace that cannot be used says why, and keeps the last state") {
  const OwnFolder folder;
  SharedWorkspace workspace(folder.path(), 0);
  must(workspace.write(1, config_of("kept")));
  SharedStateView bad = config_of("bad");
  bad.tensors.resize(1);
  bad.tensors[0].tensor.shape = {-1};
  CHECK(must_fail(workspace.write(2, bad)).code == ErrorCode::invalid_argument);
  CHECK(must(workspace.read(0)).config == "kept");
  CHECK(must_fail(SharedWorkspace(folder.path(), -1).write(1, {})).code ==
        ErrorCode::invalid_argument);
  CHECK(must_fail(SharedWorkspace("", 0).write(1, {})).code == ErrorCode::invalid_argument);
  CHECK(must_fail(SharedWorkspace(workspace.path_of(0), 0).write(1, {})).code ==
        ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace muster::test
