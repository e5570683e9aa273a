#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gloo/by_hand.h"
#include "gloo/machine.h"
#include "muster/gloo.h"
#include "muster/inspect.h"
#include "support/ranks.h"
#include "support/scale.h"

// What making and ending communicators again and again leaves behind.

namespace muster::test {
namespace {

/// What this process has.
struct Belongings {
  std::size_t threads = thread_count();
  std::size_t descriptors = descriptor_count();
};

/// When what went before has ended by itself.
Belongings settled_belongings() {
  Belongings found;
  await([&] {
    found = Belongings();
    let_pass(100ms);
    return found.threads == thread_count() && found.descriptors == descriptor_count();
  });
  return found;
}

/// What has just gone is given some time.
void check_no_more_than(const Belongings& before) {
  CHECK(holds_soon([&] {
    return thread_count() <= before.threads && descriptor_count() <= before.descriptors;
  }));
  CHECK(thread_count() <= before.threads);
  CHECK(descriptor_count() <= before.descriptors);
}

/// A store starts a thread for handlers when it first has one to run.
void await_first_handler(Store& store) {
  std::promise<void> handled;
  store.set_async("handled", "", {}, 20s, [&](const auto&) { handled.set_value(); });
  handled.get_future().wait();
}

/// Does it on two ranks, again and again; threads and descriptors are as many as at first.
void check_growth(int times, const std::function<void(StatelessProcessGroup&, int turn)>& turn) {
  auto server = start_server();
  Belongings before;
  const auto part = [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    await_first_handler(store);
    turn(group, -1);
    const auto compare = [&](const std::string& when, const std::function<void()>& look) {
      must(group.barrier(20s));
      if (rank == 0) look();
      must(store.add(when, 1));
      await([&] { return must(store.get(when)) == "2"; });
    };
    compare("first", [&] { before = settled_belongings(); });
    for (int number = 0; number < times; ++number) turn(group, number);
    compare("last", [&] { check_no_more_than(before); });
  };
  run_ranks(2, part);
}

TEST_CASE("communicators that are made and closed leave nothing") {
  check_growth(scaled(100), [](StatelessProcessGroup& group, int turn) {
    auto communicator = must(gloo::create(group, within(20s)));
    CHECK(must(sum_of(communicator, 1)) == 2);
    if (turn % 2 == 0) must(communicator.close());  // else aborted
  });
}

/// Two ranks that get no communicator in one way, each time in a group of its own.
class Failing {
 public:
  static constexpr int way_count = 5;

  Failing(const Server& server, int way) : way_(way) {
    for (int rank = 0; rank < 2; ++rank) {
      stores_.push_back(connect(server));
      await_first_handler(stores_.back());
    }
  }

  void fail() {
    const std::string name = "way" + std::to_string(way_) + "-" + std::to_string(++count_);
    std::promise<void> done;
    run_ranks(2, [&](int rank) {
      auto group = join(stores_[static_cast<std::size_t>(rank)], name, rank, 2);
      if (rank == 1) return be_in_the_way(group, done.get_future());
      const auto made = gloo::create(group, within(is_late() ? 50ms : Duration(20s)));
      done.set_value();
      check(must_fail(made));
    });
  }
  /// Not while rank 0 may still connect to them: it would end with its process.
  void let_go_of_answered() { answered_.clear(); }

 private:
  bool is_late() const { return way_ == 0 || way_ == 1; }

  /// What rank 1 does.
  void be_in_the_way(StatelessProcessGroup& group, const std::future<void>& done) {
    if (way_ == 0) {  // it comes too late
      done.wait();
      must_fail(gloo::create(group, within(20ms)));
    } else if (way_ == 1) {  // it listens, and does not connect
      answer(group);
      done.wait();
    } else if (way_ == 2) {
      answer(group);
      must(group.leave());
      done.wait();
    } else if (way_ == 3) {
      answer(group);
      must(connect_to(answered_.back(), 2));
      must(vote(group, 20s, gloo_internal::gloo_error("so it is")));
    } else {
      gloo::Options options = within(20s);
      options.interface = "eth77";
      check(must_fail(gloo::create(group, options)));
    }
  }

  void answer(StatelessProcessGroup& group) {
    constexpr std::size_t kept = 8;
    auto answered = answer_roll(group, 20s);
    // When rank 0 was not there in time any more, it says so itself.
    answered_.push_back(answered ? *std::move(answered) : Answered());
    if (answered_.size() > kept) answered_.pop_front();
  }

  void check(const Error& error) const {
    constexpr ErrorCode codes[way_count] = {ErrorCode::timed_out, ErrorCode::timed_out,
                                            ErrorCode::rank_left, ErrorCode::gloo,
                                            ErrorCode::invalid_argument};
    // On a machine that has no time for the answer.
    if (is_late() && error.code == ErrorCode::outcome_unknown) return;
    CAPTURE(way_);
    CHECK(error.code == codes[way_]);
  }

  const int way_;
  std::vector<Store> stores_;
  std::deque<Answered> answered_;
  int count_ = 0;
};

TEST_CASE("communicators that could not be made leave nothing") {
  auto server = start_server();
  std::deque<Failing> ways;
  for (int way = 0; way < Failing::way_count; ++way) ways.emplace_back(server, way);
  const auto fail_in_each_way = [&](int times) {
    run_ranks(Failing::way_count, [&](int way) {
      for (int turn = 0; turn < times; ++turn) ways[static_cast<std::size_t>(way)].fail();
    });
    settled_belongings();
    for (Failing& way : ways) way.let_go_of_answered();
  };
  fail_in_each_way(1);
  const Belongings before = settled_belongings();
  fail_in_each_way(scaled(200 / Failing::way_count));
  check_no_more_than(before);
}

TEST_CASE("a communicator is no handle: its rank leaves with that of the group") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    std::optional<StatelessProcessGroup> group = join(store, "g", rank, 2);
    auto communicator = must(gloo::create(*group, within(20s)));
    CHECK(must(sum_of(communicator, 1)) == 2);
    if (rank == 0) {
      const Error error = must_fail(group->barrier());
      CHECK(error.code == ErrorCode::rank_left);
      must(store.set("left", ""));
      return;
    }
    group.reset();
    must(store.get("left"));
  });
}

TEST_CASE("a rank whose creation is cancelled, and whose handle goes, leaves its group") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    std::optional<StatelessProcessGroup> group = join(store, "g", rank, 2);
    if (rank == 0) {
      must(store.get("cancelled"));
      CHECK(must_fail(group->barrier()).code == ErrorCode::cancelled);  // it was that round
      CHECK(must_fail(group->barrier()).code == ErrorCode::rank_left);
      return;
    }
    auto created =
        std::async(std::launch::async, [&] { return gloo::create(*group, within(20s)); });
    await([&] { return must(inspect_group(store, "g")).round.has_value(); });
    group->cancel();
    CHECK(must_fail(created.get()).code == ErrorCode::cancelled);
    must(store.set("cancelled", ""));
    group.reset();
  });
}

}  // namespace
}  // namespace muster::test
