// Waits of the runtime's own that end because their thread has something to look at.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "muster/file_lock.h"
#include "muster/interruptible.h"
#include "muster/shared.h"
#include "muster/tensor.h"
#include "runtime/files.h"
#include "runtime/job.h"
#include "runtime/signals.h"

namespace muster::test {
namespace {

bool always(void*) noexcept { return true; }

/// The error of a call that is interrupted as soon as it waits.
template <class Call>
Error interrupted(const Call& call) {
  const Interruptible interruptible(&always, nullptr, 5ms);
  const auto began = std::chrono::steady_clock::now();
  const Error error = must_fail(call());
  CHECK(std::chrono::steady_clock::now() - began < 10s);
  return error;
}

}  // namespace

TEST_CASE("who waits for a lock, for a state or for a signal file can be interrupted") {
  const TestFolder folder;
  FileLockOptions waiting;
  waiting.timeout = 60s;
  auto lock = must(FileLock::acquire(folder.file("lock")));
  const Error of_lock = interrupted([&] { return FileLock::acquire(lock.path(), waiting); });
  CHECK(of_lock.code == ErrorCode::cancelled);
  CHECK(of_lock.operation == "FileLock::acquire");

  SharedReadOptions reading;
  reading.timeout = 60s;
  const SharedWorkspace workspace(folder.path(), 0);
  const Error of_state = interrupted([&] { return workspace.read(1, reading); });
  CHECK(of_state.code == ErrorCode::cancelled);
  CHECK(of_state.operation == "SharedWorkspace::read");

  auto signals = open_signals(folder, signal_variables(1, 2));
  bool has_run = false;
  const Error of_signal = interrupted(
      [&] { return local_rank_zero_first(signals, [&](Progress&) { has_run = true; }); });
  CHECK(of_signal.code == ErrorCode::cancelled);
  CHECK_FALSE(has_run);
}

TEST_CASE("who has worked first and waits for readers can be interrupted, and they come later") {
  const TestFolder folder;
  auto first = open_signals(folder, signal_variables(0, 2));
  auto second = open_signals(folder, signal_variables(1, 2));
  const auto began = std::chrono::steady_clock::now();
  bool has_worked = false;
  {
    const Interruptible interruptible(&always, nullptr, 5ms);
    must(local_rank_zero_first(
        first, [&](Progress&) { has_worked = true; }, patient_for(60s)));
  }
  CHECK(has_worked);
  CHECK(std::chrono::steady_clock::now() - began < 10s);
  bool has_followed = false;
  must(local_rank_zero_first(
      second, [&](Progress&) { has_followed = true; }, patient_for(60s)));
  CHECK(has_followed);
}

TEST_CASE("who waits for others in shared memory can be interrupted, and tells them") {
  Job job(2);
  job.run([&](Runtime& runtime) {
    std::vector<float> numbers(10, 1.0F);
    const auto reduce = [&] {
      TensorOptions options;
      options.way = TensorWay::shared_memory;
      options.timeout = 20s;
      return all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, options);
    };
    must(reduce());
    Store& store = *runtime.store();
    if (runtime.rank() == 0) {
      CHECK(interrupted(reduce).code == ErrorCode::cancelled);
      must(store.set("told", ""));
    } else {
      must(store.get("told"));
      CHECK(must_fail(reduce()).code == ErrorCode::cancelled);
    }
    must(runtime.world().group()->barrier());
    must(reduce());  // in new memory
  });
}

}  // namespace muster::test
