#include <functional>
#include <string>
#include <vector>

#include "nccl/functions.h"
#include "nccl/gpu/bare.h"
#include "nccl/gpu/numbers.h"
#include "nccl/gpu/parts.h"

// Checks 2 and 3: very many small calls, beside those of NCCL alone; and what NCCL refuses.

namespace muster::test::gpu {
namespace {

/// So many calls in a row, each timed until it returns.
void call_often(Times& times, int count, const std::function<void()>& call) {
  for (int index = 0; index < count; ++index) {
    const auto began = Clock::now();
    call();
    times.add(Clock::now() - began);
  }
}

void tell_times(Rank& rank, const std::string& whose, const Times& times) {
  rank.figure(whose + ", median", times.median_us(), "us");
  rank.figure(whose + ", 99 %", times.long_us(), "us");
}

/// A buffer of the host's in the place of one of the device's.
Result<void> call_with_host_memory(Communicator& communicator, const Numbers& numbers) {
  std::vector<std::int64_t> host(1);
  return communicator.all_reduce(host.data(), host.data(), 1, DataType::int64, ReduceOp::sum,
                                 numbers.stream().handle(), patience);
}

/// After what NCCL keeps for good, or does not, by its mode.
void see_outcome(Rank& rank, Communicator& communicator, const Numbers& numbers,
                 ErrorCode ended_by) {
  const auto error = communicator.error();
  const auto later = numbers.sum().over(communicator);
  if (rank.mode() == nccl::Mode::blocking) {
    rank.expect(!error, "the communicator has ended: " + (error ? error->message() : ""));
    rank.expect(later.has_value(), "a right call failed");
    rank.expect(later && numbers.is_right(), "the sum of a right call is wrong");
    return;
  }
  rank.expect(error && error->code == ended_by,
              "the communicator has " +
                  (error ? "ended by " + error->message() : std::string("not ended")));
  rank.expect(!later, "a later call did not fail");
}

}  // namespace

// The calls of a batch are not waited for one by one; between batches the stream becomes idle, so
// that no call waits for room in it.
void many_calls(Rank& rank) {
  constexpr int batch = 100;
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  auto communicator = rank.create(group);
  auto own_group = rank.join("bare");
  const Bare bare(rank, own_group, rank.mode());
  Numbers numbers(rank);
  Times own;
  Times alone;
  const auto call = [&] { require(numbers.sum().over(communicator)); };
  const auto call_bare = [&] { must(bare.all_reduce(numbers.sum()), "ncclAllReduce"); };
  call();  // the first ones connect, or load something
  call_bare();
  const long wanted = rank.number("calls");
  while (rank.has_more(static_cast<long>(own.count()) < wanted)) {
    numbers.clear();
    call_often(own, batch, call);
    if (!numbers.is_right()) throw Failure("a sum is wrong");
    numbers.clear();
    call_often(alone, batch, call_bare);
    if (!numbers.is_right()) throw Failure("a sum of NCCL alone is wrong");
  }
  rank.figure("calls", static_cast<double>(own.count()), "");
  tell_times(rank, "host time of a call", own);
  tell_times(rank, "of NCCL alone", alone);
  require(communicator.close());
  require(group.barrier());  // who ends before another has closed is one that has left
}

// With NCCL_CHECK_POINTERS=1.
void refusal_bare(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  const Bare bare(rank, group, rank.mode());
  Numbers numbers(rank);
  must(bare.all_reduce(numbers.sum()), "ncclAllReduce");
  rank.expect(numbers.is_right(), "the first sum is wrong");
  numbers.clear();
  std::vector<std::int64_t> host(1);
  const int type = static_cast<int>(DataType::int64);
  const int refused = bare.settled(bare.functions().all_reduce(
      host.data(), host.data(), 1, type, 0, bare.handle(), numbers.stream().handle()));
  rank.expect(refused == nccl_internal::invalid_argument,
              "ncclAllReduce of host memory gave " + std::to_string(refused));
  const int state = bare.state();
  const int later = bare.all_reduce(numbers.sum());
  const std::string seen = "ncclCommGetAsyncError gave " + std::to_string(state) +
                           ", a right call " + std::to_string(later);
  if (rank.mode() == nccl::Mode::blocking) {
    rank.expect(later == 0, seen);
    rank.expect(later == 0 && numbers.is_right(), "the sum of a right call is wrong");
  } else {
    rank.expect(state == nccl_internal::invalid_argument && later != 0, seen);
  }
  require(group.barrier());
}

void refusal(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  auto communicator = rank.create(group);
  Numbers numbers(rank);
  const auto refused = call_with_host_memory(communicator, numbers);
  rank.expect(!refused && refused.error().code == ErrorCode::nccl &&
                  refused.error().actual == nccl_internal::invalid_argument,
              "a call with host memory: " +
                  (refused ? std::string("it was taken") : refused.error().message()));
  see_outcome(rank, communicator, numbers, ErrorCode::nccl);
  require(group.barrier());
}

void throw_in_group(Rank& rank) {
  const OnDevice current(rank.driver(), rank.device());
  auto group = rank.join("g");
  auto communicator = rank.create(group);
  Numbers numbers(rank);
  const auto throws_after = [&](int calls) {
    try {
      (void)communicator.grouped([&]() -> Result<void> {
        for (int call = 0; call < calls; ++call) require(numbers.sum().over(communicator));
        throw NotRun("the host's exception");
      });
    } catch (const NotRun&) {
      return true;
    }
    return false;
  };
  rank.expect(throws_after(0), "the exception of an empty group did not come to the host");
  require(numbers.sum().over(communicator));
  rank.expect(numbers.is_right(), "the sum after an empty group that threw is wrong");
  numbers.clear();
  rank.expect(throws_after(1), "the exception of a group did not come to the host");
  rank.expect(numbers.stream().is_idle_within(patience), "the stream is not idle after the group");
  rank.expect(numbers.received() == 0, "a call of the group was issued");
  see_outcome(rank, communicator, numbers, ErrorCode::aborted);
  require(group.barrier());
}

}  // namespace muster::test::gpu
