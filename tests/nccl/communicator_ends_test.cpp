#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "muster/inspect.h"
#include "nccl/communicator_machine.h"
#include "nccl/functions.h"
#include "support/await.h"
#include "support/ranks.h"

// How communicators end while others are inside, wait for their turn, or are told of it.

namespace muster::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A rank of a group, over a store of its own.
struct Member {
  Member(const Server& server, const std::string& name, int rank, int world_size)
      : store(connect(server)), group(join(store, name, rank, world_size)) {}

  Store store;
  StatelessProcessGroup group;
};

/// NCCL's functions in which ncclCommFinalize stays until the test lets it go on.
class HeldFinalize {
 public:
  HeldFinalize() : table_(own()) {
    is_inside() = may_go_on() = false;
    table_.comm_finalize = [](nccl::Handle handle) {
      is_inside() = true;
      holds_soon([] { return may_go_on().load(); });
      return own().comm_finalize(handle);
    };
  }

  const nccl::Functions* table() const { return &table_; }
  static std::atomic<bool>& is_inside() {
    static std::atomic<bool> is;
    return is;
  }
  static std::atomic<bool>& may_go_on() {
    static std::atomic<bool> may;
    return may;
  }

 private:
  static const nccl::Functions& own() {
    static const nccl::Functions functions = must(nccl_internal::load_nccl(doubled().nccl_library));
    return functions;
  }

  nccl::Functions table_;
};

TEST_CASE_FIXTURE(Machine, "who waits for a turn while it is closed does not get to its handle") {
  Server server = start_server();
  Member alone(server, "g", 0, 1);
  const HeldFinalize held;
  nccl::Options options = doubled();
  options.nccl = held.table();
  auto communicator = must(nccl::create(alone.group, 0, options));
  const ImplicitOrder order;
  Buffer buffer(0, 1);
  auto closed = std::async(std::launch::async, [&] { return communicator.close(); });
  await([&] { return held.is_inside().load(); });
  auto reduced = std::async(std::launch::async, [&] { return reduce(communicator, buffer); });
  auto again = std::async(std::launch::async, [&] { return communicator.close(); });
  let_pass(20ms);  // nobody sees that they wait; who comes when the handle is gone is refused, too
  held.may_go_on() = true;
  must(closed.get());
  CHECK(must_fail(reduced.get()).code == ErrorCode::closed);
  CHECK(must_fail(again.get()).code == ErrorCode::closed);
  CHECK(communicator.error()->code == ErrorCode::closed);
}

TEST_CASE_FIXTURE(Machine, "a host may come back to the registry while it is told") {
  Server server = start_server();
  Member alone(server, "g", 0, 1);
  nccl::Communicators communicators;
  std::atomic<std::size_t> counted{99};
  nccl::Options options = doubled();
  options.on_end = [&](const Error&) { counted = communicators.count(); };
  auto communicator = must(communicators.create(alone.group, 0, options));
  REQUIRE(nccl().fault("collective:async=2") == 0);
  Buffer buffer(0, 1);
  (void)reduce(*communicator, buffer);  // it may hear of it already
  await([&] { return communicators.drop_ended() == 1; });
  CHECK(counted == 1);
  buffer.values();
}

TEST_CASE_FIXTURE(Machine, "each rank of a process has its own communicator in one registry") {
  Server server = start_server();
  std::vector<std::optional<Member>> members(2);
  run_ranks(
      2, [&](int rank) { members[static_cast<std::size_t>(rank)].emplace(server, "g", rank, 2); });
  nccl::Communicators communicators;
  const std::vector<nccl::Request> requests{{&members[0]->group, 0, doubled()},
                                            {&members[1]->group, 1, doubled()}};
  for (const auto& made : communicators.create_all(requests)) must(made);
  CHECK(communicators.count() == 2);
  for (int rank = 0; rank < 2; ++rank) {
    const auto found = communicators.find(members[static_cast<std::size_t>(rank)]->group);
    REQUIRE(found);
    CHECK(found->rank() == rank);
    CHECK(must(nccl::device(*found)) == rank);
  }
  communicators.drop(members[0]->group);
  CHECK(communicators.find(members[1]->group));
}

TEST_CASE_FIXTURE(Machine,
                  "attach takes each rank for what it was, and its host may drop it then") {
  Server server = start_server();
  std::vector<std::optional<Member>> members(2);
  std::vector<std::optional<Member>> swapped(2);
  std::vector<std::unique_ptr<Communicator>> communicators(2);
  std::promise<void> dropped;
  run_ranks(2, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    members[at].emplace(server, "g", rank, 2);
    swapped[at].emplace(server, "swapped", 1 - rank, 2);
    nccl::Options options = doubled();
    if (rank == 0) {
      options.on_end = [&](const Error&) {
        std::thread([&] {  // while `attach` runs; not on the thread that tells
          communicators[0].reset();
          dropped.set_value();
        })
            .detach();
      };
    }
    communicators[at] =
        std::make_unique<Communicator>(must(nccl::create(members[at]->group, rank, options)));
    const Error error = must_fail(communicators[at]->attach(swapped[at]->group));
    CHECK(error.code == ErrorCode::mismatch);
    CHECK(error.rank_ranges == std::vector<RankRange>{{0, 1}});
  });
  auto attached =
      std::async(std::launch::async, [&] { return communicators[0]->attach(swapped[0]->group); });
  await([&] { return held_count(swapped[1]->store, "waits") == 1; });  // it has begun
  must(members[1]->group.leave());
  dropped.get_future().wait();
  must(swapped[1]->group.leave());
  CHECK(must_fail(attached.get()).code == ErrorCode::rank_left);
}

TEST_CASE_FIXTURE(Machine, "a rank that restores one group ends what hangs in another one of its") {
  Server server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    std::optional<StatelessProcessGroup> left;
    std::optional<StatelessProcessGroup> right;
    if (rank < 2) left = join(store, "left", rank, 2);
    if (rank > 0) right = join(store, "right", rank - 1, 2);
    std::optional<Communicator> communicator;
    Buffer buffer(rank, 1);
    nccl::Options options = doubled();
    options.warm_up = true;  // so that what waits for others waits on the device
    if (right) communicator = must(nccl::create(*right, rank, options));
    if (rank == 0) return must(left->leave());
    if (rank == 1) {
      CHECK(must_fail(left->barrier()).code == ErrorCode::rank_left);
      must(store.get("it hangs"));
      must(right->interrupt("it restores group 'left'"));
      must(left->regroup());
    } else {
      must(reduce(*communicator, buffer));
      must(store.set("it hangs", ""));
      await([&] { return communicator->error().has_value(); });
      const Error error = *communicator->error();
      CHECK(error.code == ErrorCode::interrupted);
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
      CHECK(error.detail.find("it restores group 'left'") != std::string::npos);
    }
    await([&] { return communicator->error().has_value(); });
    communicator.reset();
    Result<BarrierResult> met = right->barrier();
    while (!met && met.error().code == ErrorCode::interrupted) met = right->barrier();
    must(met);
    buffer.values();                                           // nothing hangs on the stream
    communicator = must(nccl::create(*right, rank, options));  // of the same epoch
    buffer.fill({rank});
    must(reduce(*communicator, buffer));
    CHECK(buffer.values()[0] == 3);
    must(right->barrier());
  });
}

TEST_CASE_FIXTURE(Machine,
                  "over another store the watch goes on, if the handle before lives until then") {
  Server server = start_server();
  Server another = start_server();
  auto before = std::make_unique<Member>(server, "g", 0, 1);
  auto communicator = must(nccl::create(before->group, 0, doubled()));
  auto now = std::make_unique<Member>(another, "g", 0, 1);
  must(communicator.attach(now->group));
  before.reset();
  CHECK_FALSE(communicator.error());
  now.reset();
  await([&] { return communicator.error().has_value(); });
  CHECK(communicator.error()->code == ErrorCode::closed);
}

TEST_CASE_FIXTURE(Machine, "a communicator is no handle: its rank leaves with that of the group") {
  Server server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    std::optional<StatelessProcessGroup> group = join(store, "g", rank, 2);
    auto communicator = must(nccl::create(*group, rank, doubled()));
    must(group->barrier());  // a create that ends later would find that a rank has left
    if (rank == 0) {
      CHECK(must_fail(group->barrier()).code == ErrorCode::rank_left);
      must(store.set("left", ""));
      return;
    }
    group.reset();
    must(store.get("left"));
  });
}

TEST_CASE_FIXTURE(Machine,
                  "a rank whose creation is cancelled, and whose handle goes, leaves its group") {
  Server server = start_server();
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
        std::async(std::launch::async, [&] { return nccl::create(*group, rank, doubled()); });
    await([&] { return must(inspect_group(store, "g")).round.has_value(); });
    group->cancel();
    CHECK(must_fail(created.get()).code == ErrorCode::cancelled);
    must(store.set("cancelled", ""));
    group.reset();
  });
}

/// An ncclCommAbort that returns when both have been called: one hangs on the other's kernel.
std::atomic<int> aborts{0};
nccl::Functions& functions_loaded() {
  static nccl::Functions functions;
  return functions;
}
int abort_with_other(nccl::Handle handle) {
  ++aborts;
  const auto until = Clock::now() + 8s;
  while (aborts < 2 && Clock::now() < until) let_pass(1ms);
  return functions_loaded().comm_abort(handle);
}

TEST_CASE_FIXTURE(Machine, "an abort that hangs on a later one's kernel does not hold that up") {
  Server server = start_server();
  Member first(server, "first", 0, 1);
  Member second(server, "second", 0, 1);
  functions_loaded() = must(nccl_internal::load_nccl(doubled().nccl_library));
  nccl::Functions functions = functions_loaded();
  functions.comm_abort = abort_with_other;
  nccl::Options options = doubled();
  options.nccl = &functions;
  nccl::Communicators communicators;
  const auto one = must(communicators.create(first.group, 0, options));
  const auto other = must(communicators.create(second.group, 0, options));
  const auto began = Clock::now();
  one->abort();
  await([] { return aborts == 1; });
  other->abort();
  await([] { return nccl().count("communicators") == 0; });
  CHECK(Clock::now() - began < 5s);
  CHECK(nccl::given_up_handles() == 0);
}

std::atomic<bool> is_inside{false};
std::atomic<bool> was_aborted_inside{false};
int abort_of_whom_nobody_uses(nccl::Handle handle) {
  if (is_inside) was_aborted_inside = true;
  return functions_loaded().comm_abort(handle);
}

TEST_CASE_FIXTURE(Machine, "a handle is not aborted under a call that is about to return") {
  Server server = start_server();
  Member alone(server, "g", 0, 1);
  functions_loaded() = must(nccl_internal::load_nccl(doubled().nccl_library));
  nccl::Functions functions = functions_loaded();
  functions.comm_abort = abort_of_whom_nobody_uses;
  nccl::Options options = doubled();
  options.nccl = &functions;
  auto communicator = must(nccl::create(alone.group, 0, options));
  const auto result = nccl::with_native(communicator, [&](nccl::Handle) -> Result<void> {
    is_inside = true;
    communicator.abort();
    let_pass(30ms);  // as a call that sees its end only when it looks
    is_inside = false;
    return {};
  });
  CHECK(must_fail(result).code == ErrorCode::aborted);
  await([] { return nccl().count("communicators") == 0; });
  CHECK_FALSE(was_aborted_inside);
}

std::atomic<int> late_aborts{0};
int abort_of_late_handle(nccl::Handle handle) {
  const int result = functions_loaded().comm_abort(handle);
  ++late_aborts;
  return result;
}

TEST_CASE_FIXTURE(Machine, "a handle that NCCL gives too late is aborted") {
  Server server = start_server();
  Member alone(server, "g", 0, 1);
  functions_loaded() = must(nccl_internal::load_nccl(doubled().nccl_library));
  nccl::Functions functions = functions_loaded();
  functions.comm_abort = abort_of_late_handle;
  nccl::Options options = doubled(1s);
  options.nccl = &functions;
  REQUIRE(nccl().fault("init:block=2000*1") == 0);
  CHECK(must_fail(nccl::create(alone.group, 0, options)).operation == "create");
  await([] { return late_aborts == 1; });
  CHECK(nccl().count("communicators") == 0);
}

TEST_CASE_FIXTURE(Machine, "what cannot be right is refused before NCCL is called") {
  Server server = start_server();
  Member alone(server, "g", 0, 1);
  Member beside(server, "h", 0, 1);
  nccl::Communicators communicators;
  const auto one = must(communicators.create(alone.group, 0, doubled()));
  const auto other = must(communicators.create(beside.group, 0, doubled()));
  Buffer buffer(0, 1);
  const auto is_refused = [](const Result<void>& result) {
    return !result && result.error().code == ErrorCode::invalid_argument &&
           result.error().group == "g" && result.error().epoch != 0;
  };
  CHECK(is_refused(
      one->all_reduce(nullptr, buffer.at(), 1, DataType::int32, ReduceOp::sum, buffer.stream())));
  CHECK(is_refused(one->broadcast(buffer.at(), nullptr, 1, DataType::int32, 0, buffer.stream())));
  CHECK(is_refused(one->grouped({})));
  CHECK(is_refused(nccl::with_native(*one, {})));
  CHECK(is_refused(one->close(-1s)));
  CHECK(is_refused(one->attach(alone.group, -1s)));
  must(one->all_reduce(nullptr, nullptr, 0, DataType::int32, ReduceOp::sum, buffer.stream()));
  must(
      one->reduce(buffer.at(), buffer.at(), 1, DataType::int32, ReduceOp::sum, 0, buffer.stream()));
  Result<void> within;
  const Error grouped = must_fail(one->grouped([&]() -> Result<void> {
    within = reduce(*other, buffer);
    return {};
  }));
  CHECK(grouped.code == ErrorCode::invalid_argument);
  CHECK(grouped.group == "h");
  CHECK(must_fail(within).code == ErrorCode::invalid_argument);
  must(reduce(*other, buffer));
  buffer.values();
}

TEST_CASE_FIXTURE(Machine,
                  "a device is issued to by another thread when the one before has ended") {
  Server server = start_server();
  Member alone(server, "g", 0, 1);
  auto communicator = must(nccl::create(alone.group, 0, doubled()));
  Buffer buffer(0, 1);
  for (int times = 0; times < 3; ++times) {
    std::thread([&] { must(reduce(communicator, buffer)); }).join();
  }
  must(reduce(communicator, buffer));
  std::thread([&] {
    CHECK(must_fail(reduce(communicator, buffer)).code == ErrorCode::would_deadlock);
  }).join();
  buffer.values();
}

}  // namespace
}  // namespace muster::test
