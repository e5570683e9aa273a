// gloo_rank ADDRESS RANK WORLD_SIZE PART: one rank of the tests of processes. It says on its
// standard output how far it is; what fails is told as "CODE RANKS".

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gloo/by_hand.h"
#include "gloo/machine.h"
#include "muster/gloo.h"
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
  if (!result.has_value()) give_up(result.error());
  return *std::move(result);
}
void or_give_up(const Result<void>& result) {
  if (!result.has_value()) give_up(result.error());
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
  auto communicator = or_give_up(gloo::create(group, within(20s)));
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
  auto again = or_give_up(gloo::create(next, within(20s)));
  say("sum " + std::to_string(or_give_up(sum_of(again, 1))));
  or_give_up(again.close());
}

/// Two groups of which one has all ranks, the other all but the last: both reduce.
void overlap(const Rank& own) {
  auto store = or_give_up(Store::connect(own.address));
  auto all = join(store, "all", own.rank, own.world_size);
  auto of_all = or_give_up(gloo::create(all, within(20s)));
  std::int64_t value = own.rank;
  if (own.rank < own.world_size - 1) {
    auto most = join(store, "most", own.rank, own.world_size - 1);
    auto of_most = or_give_up(gloo::create(most, within(20s)));
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
  auto communicator = or_give_up(gloo::create(group, within(20s)));
  auto other = join(store, "other", own.rank < 2 ? 1 - own.rank : own.rank, own.world_size);
  const auto attached = communicator.attach(other);
  say(attached ? "attached" : told(attached.error()));
  say("sum " + std::to_string(or_give_up(sum_of(communicator, 1))));
  or_give_up(communicator.close());
}

/// What this process has; it may be more for a moment.
struct Belongings {
  std::size_t threads = thread_count();
  std::size_t descriptors = descriptor_count();
};

/// Waits until this process has no more than before.
void say_what_is_left(const Belongings& before) {
  const auto until = std::chrono::steady_clock::now() + 10s;
  Belongings now;
  while (now.threads > before.threads || now.descriptors > before.descriptors) {
    if (std::chrono::steady_clock::now() > until) {
      return say(std::to_string(now.threads) + " threads, before " +
                 std::to_string(before.threads) + "; " + std::to_string(now.descriptors) +
                 " descriptors, before " + std::to_string(before.descriptors));
    }
    std::this_thread::yield();
    now = Belongings();
  }
  say("nothing is left");
}

void befall(const std::string& what) {
  if (what == "kill") ::raise(SIGKILL);
  if (what == "stop") ::raise(SIGSTOP);
  while (what == "stay") ::pause();
}

/// Gets as far as `phase` in the making of a communicator; there it befalls this rank. It goes on
/// when it was stopped.
///
/// returns  what it comes to then
Error befallen(StatelessProcessGroup& group, const std::string& what, const std::string& phase) {
  if (phase == "made") {
    std::promise<Error> over;
    gloo::Options options = within(20s);
    options.on_end = [&](const Error& error) { over.set_value(error); };
    const auto communicator = or_give_up(gloo::create(group, options));
    befall(what);
    return over.get_future().get();
  }
  if (phase == "joined") {
    befall(what);
    return gloo::create(group, within(20s)).error();
  }
  const auto answered = or_give_up(answer_roll(group, 20s));
  if (phase == "connecting") or_give_up(connect_to(answered, 1));
  if (phase == "connected") or_give_up(connect_to(answered, answered.theirs.size()));
  // Whoever goes in the very instant in which another rank connects to it may end that one's
  // process (docs/gloo.md, "Addresses").
  std::promise<void>().get_future().wait_for(100ms);
  befall(what);
  return vote(group, 20s).error();
}

/// Makes a communicator and uses it once.
std::optional<Error> make_and_use(StatelessProcessGroup& group, Duration timeout) {
  auto made = gloo::create(group, within(timeout));
  if (!made) return made.error();
  auto sum = sum_of(*made, 1);
  return sum ? std::nullopt : std::optional(sum.error());
}

/// "WHAT@PHASE" befalls rank 1. The others are told, and go on without it.
void until_befallen(const Rank& own, const std::string& part) {
  const std::string what = part.substr(0, part.find('@'));
  auto store = or_give_up(Store::connect(own.address));
  auto group = join(store, "g", own.rank, own.world_size);
  if (own.rank == 1) return say(told(befallen(group, what, part.substr(what.size() + 1))));
  // A store starts a thread for handlers when it first has one to run.
  std::promise<void> handled;
  store.set_async("handled", "", {}, 20s, [&](const auto&) { handled.set_value(); });
  handled.get_future().wait();
  const Belongings before;
  const auto began = std::chrono::steady_clock::now();
  const auto error = make_and_use(group, what == "stay" ? Duration(2s) : Duration(20s));
  const auto passed = std::chrono::steady_clock::now() - began;
  say(error ? told(*error) : "it works");
  say(std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count()));
  say_what_is_left(before);
  RegroupOptions options;
  options.min_size = what == "stay" ? own.world_size - 1 : 0;
  auto next = or_give_up(group.regroup(options, what == "stay" ? Duration(2s) : Duration(20s)));
  auto again = or_give_up(gloo::create(next, within(20s)));
  say("sum " + std::to_string(or_give_up(sum_of(again, 1))));
  or_give_up(again.close());
  say_what_is_left(before);
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
  if (part.find('@') != std::string::npos) muster::test::until_befallen(own, part);
  return 0;
}
