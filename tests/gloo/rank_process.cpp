// gloo_rank ADDRESS RANK WORLD_SIZE PART: one rank of the tests of processes. It says on its
// standard output how far it is; what fails is told as "CODE RANKS".

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gloo/machine.h"
#include "muster/gloo_communicator.h"
#include "muster/store.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

struct Rank {
  std::string address;
  int rank = 0;
  int world_size = 0;
};

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

[[noreturn]] void give_up(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::_Exit(1);
}

template <class T>
T or_give_up(Result<T> result) {
  if (!result) give_up(result.error());
  return *std::move(result);
}
void or_give_up(const Result<void>& result) {
  if (!result) give_up(result.error());
}

std::string told(const Error& error) {
  std::string text(name_of(error.code));
  for (const RankRange& range : error.rank_ranges) {
    text += ' ' + std::to_string(range.first) + '-' + std::to_string(range.last);
  }
  return text;
}

StatelessProcessGroup join(const Store& store, const std::string& name, int rank, int world_size) {
  GroupOptions options;
  options.timeout = 20s;
  return or_give_up(StatelessProcessGroup::create(store, name, rank, world_size, options));
}

/// Reduces again and again until somebody is lost, and goes on with who is left.
void until_loss(const Rank& own, Duration timeout) {
  auto store = or_give_up(Store::connect(own.address));
  auto group = join(store, "g", own.rank, own.world_size);
  auto communicator = or_give_up(GlooCommunicator::create(group, within(20s)));
  std::vector<float> values(1'000'000, 1);
  for (int turn = 0;; ++turn) {
    const auto reduced =
        communicator.all_reduce(values.data(), values.data(), values.size(), DataType::float32,
                                ReduceOp::max, nullptr, timeout);
    if (turn == 0) say("reduces");
    if (reduced) continue;
    say(told(reduced.error()));
    if (!reduced.error().ranks.empty()) {
      say(std::to_string(reduced.error().ranks.front().process.pid));
    }
    if (reduced.error().code != ErrorCode::rank_lost) return;
    break;
  }
  auto next = or_give_up(group.regroup({}, 20s));
  auto again = or_give_up(GlooCommunicator::create(next, within(20s)));
  say("sum " + std::to_string(or_give_up(sum_of(again, 1))));
  or_give_up(again.close());
}

/// Two groups of which one has all ranks, the other all but the last: both reduce.
void overlap(const Rank& own) {
  auto store = or_give_up(Store::connect(own.address));
  auto all = join(store, "all", own.rank, own.world_size);
  auto of_all = or_give_up(GlooCommunicator::create(all, within(20s)));
  std::int64_t value = own.rank;
  if (own.rank < own.world_size - 1) {
    auto most = join(store, "most", own.rank, own.world_size - 1);
    auto of_most = or_give_up(GlooCommunicator::create(most, within(20s)));
    const std::int64_t first = or_give_up(sum_of(of_all, value));
    value = or_give_up(sum_of(of_most, first));
    or_give_up(of_most.close());
  } else {
    value = or_give_up(sum_of(of_all, value));
  }
  say(std::to_string(value));
  or_give_up(of_all.close());
}

/// A group is formed again, with other processes under the first two ranks.
void exchange(const Rank& own) {
  auto store = or_give_up(Store::connect(own.address));
  auto group = join(store, "g", own.rank, own.world_size);
  auto communicator = or_give_up(GlooCommunicator::create(group, within(20s)));
  auto other = join(store, "other", own.rank < 2 ? 1 - own.rank : own.rank, own.world_size);
  const auto attached = communicator.attach(other);
  say(attached ? "attached" : told(attached.error()));
  say("sum " + std::to_string(or_give_up(sum_of(communicator, 1))));
  or_give_up(communicator.close());
}

}  // namespace
}  // namespace muster::test

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const muster::test::Rank own{arguments[1], std::atoi(arguments[2]), std::atoi(arguments[3])};
  const std::string part = arguments[4];
  if (part == "until_loss") muster::test::until_loss(own, std::chrono::seconds(20));
  if (part == "until_late") muster::test::until_loss(own, std::chrono::seconds(2));
  if (part == "overlap") muster::test::overlap(own);
  if (part == "exchange") muster::test::exchange(own);
  return 0;
}
