#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "nccl/communicator_machine.h"

// How communicators of one process are issued to and ended: of groups of one rank each, which need
// nobody else.

namespace muster::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A group of one rank, with what it needs.
class Alone {
 public:
  explicit Alone(const std::string& name = "g") : group_(join(store_, name, 0, 1)) {}

  Communicator create(nccl::Options options = doubled()) {
    return must(nccl::create(group_, 0, std::move(options)));
  }
  StatelessProcessGroup& group() { return group_; }

 private:
  Server server_ = start_server();
  Store store_ = connect(server_);
  StatelessProcessGroup group_;
};

template <class Call>
auto on_another_thread(Call call) {
  return std::async(std::launch::async, std::move(call)).get();
}

/// Two communicators, of one rank each, on one device.
class OneDevice {
 public:
  const std::shared_ptr<Communicator>& one() const { return one_; }
  const std::shared_ptr<Communicator>& other() const { return other_; }

 private:
  Alone first_{"first"};
  Alone second_{"second"};
  nccl::Communicators communicators_;
  const std::shared_ptr<Communicator> one_ =
      must(communicators_.create(first_.group(), 0, doubled()));
  const std::shared_ptr<Communicator> other_ =
      must(communicators_.create(second_.group(), 0, doubled()));
};

TEST_CASE_FIXTURE(Machine, "one thread issues to a device, unless NCCL orders what several issue") {
  OneDevice device;
  const auto& one = device.one();
  const auto& other = device.other();
  Buffer buffer(0, 1);
  must(reduce(*one, buffer));
  must(reduce(*other, buffer));
  for (const auto& each : {one, other}) {
    const Error error = on_another_thread([&] { return must_fail(reduce(*each, buffer)); });
    CHECK(error.code == ErrorCode::would_deadlock);
    CHECK_FALSE(each->error());
  }
  {
    const ImplicitOrder order;
    for (const auto& each : {one, other}) {
      CHECK(on_another_thread([&] { return reduce(*each, buffer).has_value(); }));
    }
  }
  buffer.values();
}

TEST_CASE_FIXTURE(Machine, "a thread hands issuing over, as the tasks of an executor do") {
  OneDevice device;
  const auto& one = device.one();
  const auto& other = device.other();
  Buffer buffer(0, 1);
  must(nccl::release_issuer(*one));  // nobody has issued
  must(reduce(*one, buffer));
  const auto code_of_other = [&](const auto& call) {
    return on_another_thread([&] { return must_fail(call()).code; });
  };
  CHECK(code_of_other([&] { return reduce(*other, buffer); }) == ErrorCode::would_deadlock);
  CHECK(code_of_other([&] { return nccl::release_issuer(*other); }) == ErrorCode::would_deadlock);
  must(one->grouped([&]() -> Result<void> {
    CHECK(must_fail(nccl::release_issuer(*one)).code == ErrorCode::invalid_argument);
    return {};
  }));
  must(nccl::release_issuer(*other));  // of the same device
  auto task = std::async(std::launch::async, [&] {
    must(reduce(*other, buffer));
    must(nccl::release_issuer(*other));
    return std::this_thread::get_id();
  });
  CHECK(task.get() != std::this_thread::get_id());
  must(reduce(*one, buffer));
  CHECK(code_of_other([&] { return reduce(*one, buffer); }) == ErrorCode::would_deadlock);
  Communicator moved = std::move(*one);
  CHECK(must_fail(nccl::release_issuer(*one)).code == ErrorCode::closed);
  buffer.values();
}

TEST_CASE_FIXTURE(Machine,
                  "calls on a device take turns, and one whose turn does not come is told") {
  OneDevice device;
  const auto& one = device.one();
  const auto& other = device.other();
  const ImplicitOrder order;
  Buffer buffer(0, 1);
  std::promise<void> is_inside;
  std::promise<void> may_leave;
  auto held = std::async(std::launch::async, [&] {
    return nccl::with_native(*one, [&](nccl::Handle) -> Result<void> {
      must(reduce(*other, buffer));  // its own turn
      is_inside.set_value();
      may_leave.get_future().wait();
      return {};
    });
  });
  is_inside.get_future().wait();
  for (const auto& each : {one, other}) {
    CHECK(must_fail(reduce(*each, buffer, 50ms)).code == ErrorCode::timed_out);
    CHECK_FALSE(each->error());
  }
  auto waits = std::async(std::launch::async, [&] { return reduce(*other, buffer); });
  CHECK(must_fail(one->close(50ms)).code == ErrorCode::timed_out);
  CHECK(one->error()->code == ErrorCode::timed_out);
  may_leave.set_value();
  CHECK(must_fail(held.get()).code == ErrorCode::timed_out);
  must(waits.get());
  must(on_another_thread([&] { return other->close(); }));
  buffer.values();
}

TEST_CASE_FIXTURE(Machine, "communicators that warm up are made at once on one device") {
  Alone first("first");
  Alone second("second");
  nccl::Communicators communicators;
  nccl::Options options = doubled();
  options.warm_up = true;
  const std::vector<nccl::Request> requests{{&first.group(), 0, options},
                                            {&second.group(), 0, options}};
  for (const auto& made : communicators.create_all(requests)) must(made);
  Buffer buffer(0, 1);
  must(reduce(*communicators.find(first.group()), buffer));
  must(reduce(*communicators.find(second.group()), buffer));
  buffer.values();
}

TEST_CASE_FIXTURE(Machine,
                  "an abort brings back who is inside, is told of once, and again is nothing") {
  for (const char* const inside : {"collective:later=60000", "collective:block=1500"}) {
    Alone alone;
    std::atomic<int> told{0};
    nccl::Options options = doubled();
    options.on_end = [&](const Error& error) {
      told += error.code == ErrorCode::aborted ? 1 : 100;
    };
    auto communicator = alone.create(options);
    Buffer buffer(0, 1);
    REQUIRE(nccl().fault(inside) == 0);
    const auto began = Clock::now();
    std::promise<void> entering;
    auto call = std::async(std::launch::async, [&] {
      entering.set_value();
      return must_fail(reduce(communicator, buffer));
    });
    entering.get_future().get();
    let_pass(50ms);  // it is inside then, most of the time
    communicator.abort();
    communicator.abort();
    CHECK(call.get().code == ErrorCode::aborted);
    CHECK(Clock::now() - began < 5s);
    CHECK(told == 1);
    REQUIRE(communicator.error());
    CHECK(communicator.error()->code == ErrorCode::aborted);
    CHECK(must_fail(reduce(communicator, buffer)).code == ErrorCode::aborted);
    nccl().clear_faults();
  }
}

TEST_CASE_FIXTURE(
    Machine, "a remote error without a loss is NCCL's own, after 5 s or at the call's deadline") {
  REQUIRE(nccl().fault("collective:async=6") == 0);
  const auto check = [](int device, Duration timeout, Duration longest) {
    Alone alone;
    const CurrentDevice current(device);
    auto communicator = must(nccl::create(alone.group(), device, doubled()));
    Buffer buffer(device, 1);
    const auto failed = [&] {
      for (;;) {
        const auto began = Clock::now();
        if (const auto done = reduce(communicator, buffer, timeout); !done) {
          CHECK(Clock::now() - began < longest);
          return done.error();
        }
        let_pass(1ms);
      }
    }();
    CHECK(failed.code == ErrorCode::nccl);
    CHECK(failed.actual == 6);
    CHECK(failed.detail.find("a fault that was injected") != std::string::npos);
    REQUIRE(communicator.error());
    CHECK(communicator.error()->actual == 6);
  };
  auto waiting = std::async(std::launch::async, [&] { check(0, default_timeout, 7s); });
  check(1, 400ms, 3s);
  waiting.get();
}

TEST_CASE_FIXTURE(Machine, "who waits for a stream learns from error() that NCCL cannot go on") {
  struct Case {
    const char* fault;
    std::uint64_t actual;
    Duration at_least;
  };
  for (const Case& each : {Case{"collective:async=2", 2, 0ms}, Case{"collective:async=6", 6, 5s}}) {
    Alone alone;
    std::atomic<int> told{0};
    nccl::Options options = doubled();
    options.on_end = [&](const Error&) { ++told; };
    auto communicator = alone.create(options);
    REQUIRE(nccl().fault(each.fault) == 0);
    Buffer buffer(0, 1);
    const auto began = Clock::now();
    must(reduce(communicator, buffer));
    await([&] { return communicator.error().has_value(); });
    CHECK(Clock::now() - began >= each.at_least);
    CHECK(communicator.error()->code == ErrorCode::nccl);
    CHECK(communicator.error()->actual == each.actual);
    CHECK(told == 1);
    buffer.values();  // its stream goes on
    nccl().clear_faults();
  }
}

TEST_CASE_FIXTURE(Machine, "all of a process are aborted together, and their streams go on") {
  Alone first("first");
  Alone second("second");
  nccl::Communicators communicators;
  must(communicators.create(first.group(), 0, doubled()));
  must(communicators.create(second.group(), 1, doubled()));
  Buffer of_first(0, 1);
  Buffer of_second(1, 1);
  REQUIRE(nccl().fault("collective:forever") == 0);
  must(reduce(*communicators.find(first.group()), of_first));
  must(reduce(*communicators.find(second.group()), of_second));
  communicators.abort_all();
  of_first.values();
  of_second.values();
  CHECK(communicators.count() == 2);
  CHECK(communicators.find(first.group())->error()->code == ErrorCode::aborted);
  communicators.drop(first.group());
  CHECK(communicators.count() == 1);
  CHECK_FALSE(communicators.find(first.group()));
}

TEST_CASE_FIXTURE(Machine,
                  "those of epochs that are past are found among all, and dropped when over") {
  Alone alone;
  nccl::Communicators communicators;
  const auto before = must(communicators.create(alone.group(), 0, doubled()));
  StatelessProcessGroup next = must(alone.group().regroup());
  CHECK(communicators.find(next) == nullptr);
  const auto now = must(communicators.create(next, 0, doubled()));
  CHECK(before->epoch() < now->epoch());
  CHECK(communicators.all().size() == 2);
  CHECK(communicators.drop_ended() == 0);
  before->abort();
  CHECK(communicators.drop_ended() == 1);
  CHECK(communicators.all() == std::vector{now});
  CHECK(communicators.find(next) == now);
}

TEST_CASE_FIXTURE(Machine, "an abort that hangs costs its handle, and nobody waits for it") {
  Alone alone;
  const int before = nccl::given_up_handles();
  nccl::Options options = doubled();
  options.abort_timeout = 3s;
  std::optional<Communicator> communicator(alone.create(options));
  REQUIRE(nccl().fault("abort:hang") == 0);
  const auto began = Clock::now();
  communicator.reset();
  CHECK(nccl::given_up_handles() == before);  // nobody has waited
  await([&] { return nccl::given_up_handles() == before + 1; });
  CHECK(Clock::now() - began >= 3s);
  alone.create();  // the next one is another one
}

TEST_CASE_FIXTURE(Machine, "a call that NCCL refuses ends the communicator, which says so") {
  for (const int refusal : {4, 5}) {  // ncclInvalidArgument, ncclInvalidUsage
    Alone alone;
    std::atomic<int> told_count{0};
    nccl::Options options = doubled();
    options.on_end = [&](const Error&) { ++told_count; };
    auto communicator = alone.create(options);
    Buffer buffer(0, 1);
    REQUIRE(nccl().fault(("collective:result=" + std::to_string(refusal) + "*1").c_str()) == 0);
    const Error error = must_fail(reduce(communicator, buffer));
    CHECK(error.code == ErrorCode::nccl);
    CHECK(error.actual == static_cast<std::uint64_t>(refusal));
    CHECK(error.detail.find("NCCL keeps a refusal for good") != std::string::npos);
    CHECK(told_count == 1);
    for (const Error& later :
         {communicator.error().value(), must_fail(reduce(communicator, buffer))}) {
      CHECK(later.code == ErrorCode::nccl);
      CHECK(later.actual == static_cast<std::uint64_t>(refusal));
    }
    buffer.values();  // the abort lets the stream go
  }
}

TEST_CASE_FIXTURE(Machine, "a handle goes without waiting for NCCL") {
  Alone alone;
  const int before = nccl::given_up_handles();
  REQUIRE(nccl().fault("abort:hang") == 0);
  alone.create();
  CHECK(nccl().count("communicators") == 1);  // its abort hangs, and the handle is gone
  nccl().clear_faults();
  await([] { return nccl().count("communicators") == 0; });
  CHECK(nccl::given_up_handles() == before);
}

TEST_CASE_FIXTURE(Machine, "after eight attempts that failed inside NCCL there are no more") {
  Alone alone;
  REQUIRE(nccl().fault("init:result=3") == 0);
  const auto fail = [&] { return must_fail(nccl::create(alone.group(), 0, doubled())); };
  for (int attempt = 0; attempt < 8; ++attempt) {
    CHECK(nccl::failed_attempts() == attempt);
    CHECK(fail().code == ErrorCode::nccl);
  }
  nccl().clear_faults();
  const Error refused = fail();
  CHECK(refused.code == ErrorCode::resource_exhausted);
  CHECK(refused.rank_ranges == std::vector<RankRange>{{0, 0}});
  CHECK(refused.actual == 8);
  CHECK(nccl::failed_attempts() == 8);
  nccl::forgive_attempts();
  alone.create();
}

}  // namespace
}  // namespace muster::test
