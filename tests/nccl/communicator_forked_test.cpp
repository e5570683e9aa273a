#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "muster/nccl_id.h"
#include "nccl/communicator_machine.h"
#include "support/child.h"

// A forked child has no CUDA of its parent's, and none of its threads: it is told that the
// communicator is not its own, and calls nothing of NCCL's.

namespace muster::test {
namespace {

/// How many of all calls give anything but `forked`.
int odd_calls(Communicator& communicator, StatelessProcessGroup& group, Buffer& buffer) {
  void* const at = buffer.at();
  void* const stream = buffer.stream();
  constexpr auto type = DataType::int32;
  constexpr auto sum = ReduceOp::sum;
  const auto result_of = [](const auto& result) {
    return result ? Result<void>() : Result<void>(result.error());
  };
  const auto error = communicator.error();
  const std::vector<Result<void>> results = {
      communicator.all_reduce(at, at, 1, type, sum, stream),
      communicator.broadcast(at, at, 1, type, 0, stream),
      communicator.reduce(at, at, 1, type, sum, 0, stream),
      communicator.all_gather(at, at, 1, type, stream),
      communicator.reduce_scatter(at, at, 1, type, sum, stream),
      communicator.all_to_all(at, at, 1, type, stream),
      communicator.gather(at, at, 1, type, 0, stream),
      communicator.scatter(at, at, 1, type, 0, stream),
      communicator.send(at, 1, type, 0, stream),
      communicator.recv(at, 1, type, 77, stream),
      communicator.grouped([] { return Result<void>(); }),
      nccl::with_native(communicator, [](nccl::Handle) { return Result<void>(); }),
      result_of(nccl::native_handle(communicator)),
      communicator.attach(group),
      communicator.close(),
      error ? Result<void>(*error) : Result<void>(),
      result_of(nccl::create(group, 0, doubled())),
      result_of(nccl::unique_id(group, 5s)),
  };
  int odd = 0;
  for (const auto& result : results) {
    odd += !result && result.error().code == ErrorCode::forked ? 0 : 1;
  }
  return odd;
}

TEST_CASE_FIXTURE(Machine, "a forked child gets `forked` from every call, and ends nothing") {
  Server server = start_server();
  Store store = connect(server);
  StatelessProcessGroup group = join(store, "g", 0, 1);
  auto communicators = std::make_unique<nccl::Communicators>();
  auto kept = must(communicators->create(group, 0, doubled()));
  std::optional<Communicator> alone = must(nccl::create(group, 0, doubled()));
  Buffer buffer(0, 1);
  CHECK(in_child([&] { return odd_calls(*alone, group, buffer); }) == 0);
  const long communicators_gone = in_child([&] {
    const long before = nccl().count("communicators");
    alone->abort();
    alone.reset();
    communicators->abort_all();
    communicators->drop(group);
    if (communicators->count() != 0 || communicators->find(group)) return 78;
    kept.reset();
    const auto refused = communicators->create(group, 0, doubled());
    communicators.reset();
    const bool is_forked = !refused && refused.error().code == ErrorCode::forked;
    return is_forked ? static_cast<int>(before - nccl().count("communicators")) : 77;
  });
  CHECK(communicators_gone == 0);
  CHECK(nccl().count("communicators") == 2);
  CHECK_FALSE(alone->error());
  must(alone->close());
  must(kept->close());
}

}  // namespace
}  // namespace muster::test
