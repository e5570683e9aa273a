#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include "gloo/machine.h"
#include "muster/gloo.h"
#include "muster/nccl.h"
#include "support/ranks.h"

// A program that takes any kind of communicator: every call, as both kinds have it.

namespace muster::test {
namespace {

template <class Communicator>
Result<void> every_call(Communicator& communicator, StatelessProcessGroup& group, void* memory,
                        void* stream) {
  constexpr auto type = DataType::int32;
  constexpr auto sum = ReduceOp::sum;
  constexpr std::size_t count = 1;
  const int next = (communicator.rank() + 1) % communicator.world_size();
  const int last =
      (communicator.rank() + communicator.world_size() - 1) % communicator.world_size();
  char* const there = static_cast<char*>(memory) +
                      static_cast<std::size_t>(communicator.world_size()) * size_of(type);
  const Result<void> results[] = {
      communicator.all_reduce(memory, memory, count, type, sum, stream, 10s),
      communicator.broadcast(memory, memory, count, type, 0, stream, 10s),
      communicator.reduce(memory, memory, count, type, sum, 0, stream, 10s),
      communicator.all_gather(memory, there, count, type, stream, 10s),
      communicator.reduce_scatter(there, memory, count, type, sum, stream, 10s),
      communicator.all_to_all(memory, there, count, type, stream, 10s),
      communicator.gather(memory, there, count, type, 0, stream, 10s),
      communicator.scatter(there, memory, count, type, 0, stream, 10s),
      communicator.grouped(
          [&] {
            auto sent = communicator.send(memory, count, type, next, stream);
            return sent ? communicator.recv(there, count, type, last, stream) : sent;
          },
          10s),
      communicator.attach(group, 10s),
      communicator.error() ? Result<void>(*communicator.error()) : Result<void>(),
      communicator.close(10s),
  };
  for (const Result<void>& result : results) {
    if (!result) return result;
  }
  communicator.abort();
  Communicator::abort_all({&communicator});
  return communicator.epoch() == group.epoch() && communicator.group() == group.name()
             ? Result<void>()
             : results[0];
}

template <class Communicator>
using EveryCall = Result<void> (*)(Communicator&, StatelessProcessGroup&, void*, void*);

// That it compiles is the test of this one.
[[maybe_unused]] constexpr EveryCall<Communicator> on_gpus = every_call<Communicator>;
constexpr EveryCall<Communicator> on_hosts = every_call<Communicator>;

TEST_CASE("one program takes communicators of both kinds") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    auto communicator = must(gloo::create(group, within(20s)));
    std::int32_t memory[6] = {};
    must(on_hosts(communicator, group, memory, nullptr));
  });
}

}  // namespace
}  // namespace muster::test
