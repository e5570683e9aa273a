#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>

#include "muster/codec_cereal.h"
#include "support/ranks.h"

namespace muster::test {
namespace {

using Group = StatelessProcessGroup;

/// Runs `part` on every rank of a group of its own store each.
void in_group(const Server& server, int world_size, const std::function<void(Group& group)>& part,
              const GroupOptions& options = patience()) {
  run_ranks(world_size, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, world_size, options);
    part(group);
  });
}

/// Only who connects for that may declare a process dead.
void check_denied(Store& client, const ProcessId& process) {
  CHECK(must_fail(client.report_dead(process, "a mistake")).code == ErrorCode::permission_denied);
}

TEST_CASE("every collective gives every rank what it promises") {
  auto server = start_server();
  in_group(server, 4, [](Group& group) {
    const int rank = group.rank();
    CHECK(group.world_size() == 4);
    CHECK(group.name() == "g");
    CHECK(group.epoch() > 0);

    CHECK(must(group.broadcast_obj(std::to_string(rank), Rank{2})) == "2");
    CHECK(must(group.broadcast_obj("text", Rank{0})) == "text");
    CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1, 2, 3});

    const auto gathered = must(group.gather_obj(rank * rank, Rank{1}));
    CHECK(gathered == (rank == 1 ? std::vector<int>{0, 1, 4, 9} : std::vector<int>()));

    const std::vector<std::string> objects{"zero", "one", "two", ""};
    const auto mine =
        must(group.scatter_obj(rank == 3 ? objects : std::vector<std::string>(), Rank{3}));
    CHECK(mine == objects[static_cast<std::size_t>(rank)]);

    CHECK(must(group.all_reduce_obj(rank, [](int a, int b) { return a + b; })) == 6);
    const auto joined = [](const std::string& a, const std::string& b) { return a + b; };
    CHECK(must(group.all_reduce_obj(std::to_string(rank), joined)) == "0123");
    CHECK(must(group.all_gather_obj(std::vector<double>(static_cast<std::size_t>(rank), 0.5)))[3]
              .size() == 3);

    const BarrierResult passed = must(group.barrier());
    CHECK(passed.unconfirmed.empty());
    CHECK(group.counters().rounds == 9);
  });
}

TEST_CASE("objects between ranks arrive in order, per source and tag") {
  auto server = start_server();
  in_group(server, 3, [](Group& group) {
    constexpr int count = 50;
    if (group.rank() < 2) {
      for (int i = 0; i < count; ++i)
        must(group.send_obj(Rank{2}, std::make_pair(group.rank(), i)));
      must(group.send_obj(Rank{2}, "tagged", Tag{7}));
      CHECK(group.counters().objects_sent == count + 1);
    } else {
      using Pair = std::pair<int, int>;
      CHECK(must(group.recv_obj<std::string>(Rank{1}, Tag{7})) == "tagged");
      for (int i = 0; i < count; ++i) {
        CHECK(must(group.recv_obj<Pair>(Rank{0})) == Pair(0, i));
        const auto received = must(group.recv_numbered_obj<Pair>(Rank{1}));
        CHECK(received.object == Pair(1, i));
        CHECK(received.sequence == static_cast<std::uint64_t>(i));
      }
      CHECK(must(group.recv_obj<std::string>(Rank{0}, Tag{7})) == "tagged");
      CHECK(group.counters().objects_received == 2 * count + 2);
      CHECK(must_fail(group.recv_obj<int>(Rank{0}, 0ms)).code == ErrorCode::not_found);
    }
    must(group.barrier());
  });
}

TEST_CASE("many threads send on one stream, and all arrives once") {
  auto server = start_server();
  in_group(server, 2, [](Group& group) {
    constexpr int threads = 4;
    constexpr int each = 50;
    if (group.rank() == 0) {
      run_ranks(threads, [&](int thread) {
        for (int i = 0; i < each; ++i) must(group.send_obj(Rank{1}, thread * each + i));
      });
    } else {
      std::vector<int> got;
      for (int i = 0; i < threads * each; ++i) got.push_back(must(group.recv_obj<int>(Rank{0})));
      std::sort(got.begin(), got.end());
      std::vector<int> wanted(threads * each);
      std::iota(wanted.begin(), wanted.end(), 0);
      CHECK(got == wanted);
    }
    must(group.barrier());
  });
}

TEST_CASE("overlapping groups over one connection do not mix") {
  auto server = start_server();
  run_ranks(4, [&](int rank) {
    auto store = connect(server);
    auto wide = join(store, "wide", rank, 4);
    std::optional<Group> narrow;
    if (rank < 3) narrow = join(store, "narrow", rank, 3);
    for (int i = 0; i < 20; ++i) {
      CHECK(must(wide.broadcast_obj(rank == 2 ? 2 : -1, Rank{2})) == 2);
      if (narrow) CHECK(must(narrow->broadcast_obj(rank == 2 ? 3 : -1, Rank{2})) == 3);
      if (narrow) must(narrow->barrier());
      must(wide.barrier());
    }
    CHECK(wide.store().address() == store.address());
  });
}

TEST_CASE("a group outlives the store it was made on") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    std::optional<Group> group;
    {
      auto store = connect(server);
      group = join(store, "g", rank, 2);
    }
    must(group->barrier());
    must(group->store().set("k" + std::to_string(rank), "v"));
    must(group->barrier());
  });
}

TEST_CASE("arguments out of range are refused before anything counts") {
  auto server = start_server();
  auto store = connect(server);
  for (const auto& [rank, size] : {std::pair(-1, 2), std::pair(2, 2), std::pair(0, 0)}) {
    const auto refused = Group::create(store, "g", rank, size);
    CHECK(must_fail(refused).code == ErrorCode::invalid_argument);
  }
  CHECK(must_fail(Group::create(store, "", 0, 1)).code == ErrorCode::invalid_argument);
  CHECK(must_fail(Group::create(store, "g", 0, 20'000)).code == ErrorCode::too_large);
  CHECK(must_fail(Group::create(store, "g", 0, 1, patience(0ms))).code ==
        ErrorCode::invalid_argument);

  auto group = join(store, "g", 0, 1);
  CHECK(must_fail(group.send_obj(Rank{1}, 0)).code == ErrorCode::invalid_argument);
  CHECK(must_fail(group.recv_obj<int>(Rank{-1})).code == ErrorCode::invalid_argument);
  CHECK(must_fail(group.broadcast_obj(0, Rank{1})).code == ErrorCode::invalid_argument);
  CHECK(must_fail(group.gather_obj(0, Rank{1})).code == ErrorCode::invalid_argument);
  const auto scattered = group.scatter_obj(std::vector<int>{1, 2}, Rank{0});
  CHECK(must_fail(scattered).code == ErrorCode::invalid_argument);
  CHECK(must_fail(scattered).operation == "scatter_obj");
  CHECK(must_fail(group.barrier(0ms)).code == ErrorCode::invalid_argument);
  CHECK(must_fail(group.barrier(-5ms)).code == ErrorCode::invalid_argument);
  CHECK(group.counters().rounds == 0);
  must(group.barrier());
  CHECK(group.counters().rounds == 1);
}

TEST_CASE("a barrier that times out names who did not come, in an error that says where") {
  auto server = start_server();
  in_group(server, 3, [](Group& group) {
    if (group.rank() == 2) {
      must(group.store().wait({"over/0", "over/1"}));
      return;
    }
    const Error error = must_fail(group.barrier(200ms));
    CHECK(error.code == ErrorCode::timed_out);
    CHECK(error.operation == "barrier");
    CHECK(error.group == "g");
    CHECK(error.epoch == group.epoch());
    CHECK(error.round == 1);
    CHECK(error.elapsed > 0ms);
    CHECK(error.elapsed < 5s);
    CHECK(error.where == group.store().address());
    CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
    CHECK(error.decided_by_timeout == 200ms);
    must(group.store().set("over/" + std::to_string(group.rank()), ""));
  });
}

TEST_CASE("a group that this store has a handle of is busy, and nothing has happened") {
  auto server = start_server();
  const Store store = connect(server);
  Group group = must(Group::create(store, "workers", 0, 1));
  const Error error = must_fail(Group::create(store, "workers", 0, 1));
  CHECK(error.code == ErrorCode::busy);
  CHECK(error.happened == Happened::no);
  must(group.barrier());
}

TEST_CASE("a second collective on a handle is busy, and the first goes on") {
  auto server = start_server();
  in_group(server, 2, [](Group& group) {
    if (group.rank() == 0) {
      std::promise<Result<BarrierResult>> first;
      group.barrier_async(20s, [&](Result<BarrierResult> result) { first.set_value(result); });
      CHECK(must_fail(group.all_gather_obj(1)).code == ErrorCode::busy);
      must(group.store().set("go", ""));
      must(first.get_future().get());
    } else {
      must(group.store().get("go"));
      must(group.barrier());
    }
    must(group.barrier());
  });
}

TEST_CASE("cancel of a handle ends its round for all ranks, and the group goes on") {
  auto server = start_server();
  in_group(server, 3, [](Group& group) {
    if (group.rank() == 0) {
      std::promise<Result<BarrierResult>> passed;
      group.barrier_async(20s, [&](Result<BarrierResult> result) { passed.set_value(result); });
      group.cancel();
      const Error error = must_fail(passed.get_future().get());
      CHECK(error.code == ErrorCode::cancelled);
      CHECK(error.elapsed < 10s);
      must(group.store().set("cancelled", ""));
    } else {
      if (group.rank() == 2) must(group.store().get("cancelled"));  // else it would be passed
      const Error error = must_fail(group.barrier(20s));
      CHECK(error.code == ErrorCode::cancelled);
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
    }
    must(group.barrier());
  });
}

TEST_CASE("cancel of a store ends receives at once and rounds for all") {
  auto server = start_server();
  in_group(server, 2, [](Group& group) {
    if (group.rank() == 0) {
      std::promise<Result<ReceivedBytes>> received;
      std::promise<Result<BarrierResult>> passed;
      group.recv_bytes_async(Rank{1}, codec_id::raw, Tag(), 20s,
                             [&](Result<ReceivedBytes> result) { received.set_value(result); });
      group.barrier_async(20s, [&](Result<BarrierResult> result) { passed.set_value(result); });
      group.store().cancel();
      CHECK(must_fail(received.get_future().get()).code == ErrorCode::cancelled);
      CHECK(must_fail(passed.get_future().get()).code == ErrorCode::cancelled);
      must(group.store().set("cancelled", ""));
    } else {
      must(group.store().get("cancelled"));
      CHECK(must_fail(group.barrier(20s)).code == ErrorCode::cancelled);
    }
    must(group.barrier());
  });
}

TEST_CASE("a group that goes together with its store ends the session in order") {
  ServerOptions options;
  options.session_timeout = 60s;
  options.grace = 60s;  // for so long the server keeps a session that said no goodbye
  auto server = start_server(options);
  for (int time = 0; time < 300; ++time) {
    auto store = connect(server);
    auto group = join(store, "g", 0, 1);
  }
  auto store = connect(server);
  await([&] { return held_count(store, "sessions") == 1; });
}

/// What the other process does in the test below; 0: all was as promised.
int be_declared_dead(const std::string& address) {
  auto store = Store::connect(address, {}, 10s);
  if (!store) return 1;
  auto group = StatelessProcessGroup::create(*store, "g", 1, 2, patience());
  if (!group) return 2;
  const auto is_fenced = [](const auto& result) {
    return !result.has_value() && result.error().code == ErrorCode::fenced;
  };
  if (!is_fenced(group->barrier(20s))) return 3;
  if (!is_fenced(store->get("k"))) return 4;
  if (!store->reopen(10s)) return 5;
  if (!is_fenced(group->barrier(20s))) return 6;  // the group stays dead
  return store->set("reopened", "v").has_value() ? 0 : 7;
}

TEST_CASE("a process that is declared dead is fenced until it reopens; its group stays dead") {
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const pid_t child = ::fork();  // before this process has threads
  if (child == 0) {
    char address[64] = "";
    ::_exit(::read(pipe_ends[0], address, sizeof(address) - 1) > 0 ? be_declared_dead(address) : 9);
  }
  auto server = start_disturbed_server();
  const std::string address = server.addresses().front();
  REQUIRE(::write(pipe_ends[1], address.data(), address.size()) > 0);

  const auto lost = std::make_shared<std::promise<Error>>();
  GroupOptions options = patience();
  options.on_loss = [lost](const Error& error) { lost->set_value(error); };
  auto store = connect(server);
  auto group = join(store, "g", 0, 2, options);
  const auto members = must(group.members());
  REQUIRE(members.size() == 2);
  CHECK(members[1].state == MemberState::live);
  CHECK(members[1].process.pid == static_cast<std::uint32_t>(child));
  check_denied(store, members[1].process.id);
  StoreOptions other;
  other.role = Role::supervisor;
  must(connect(server, std::move(other)).report_dead(members[1].process.id, "a test says so"));

  for (const Error& error : {lost->get_future().get(), must_fail(group.barrier())}) {
    CHECK(error.code == ErrorCode::rank_lost);
    CHECK(error.cause == LossCause::reported);
    CHECK(error.group == "g");
    CHECK(error.epoch == group.epoch());
    REQUIRE(error.ranks.size() == 1);
    CHECK(error.ranks[0].process.pid == static_cast<std::uint32_t>(child));
  }
  must(store.get("reopened"));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST_CASE("what nobody fetched can be dropped, and its receiver is told") {
  auto server = start_server();
  in_group(server, 2, [](Group& group) {
    if (group.rank() == 0) {
      must(group.send_obj(Rank{1}, "first"));
      must(group.send_obj(Rank{1}, "second"));
      CHECK(must(group.expire_data(0ms)) == 2);
      must(group.send_obj(Rank{1}, "third"));
      must(group.barrier());
    } else {
      must(group.barrier());
      CHECK(must_fail(group.recv_obj<std::string>(Rank{0})).code == ErrorCode::expired);
      CHECK(must_fail(group.recv_obj<std::string>(Rank{0})).code == ErrorCode::expired);
      CHECK(must(group.recv_obj<std::string>(Rank{0})) == "third");
    }
    must(group.barrier());
  });
}

TEST_CASE("different codecs and different collectives are told apart") {
  auto server = start_server();
  in_group(server, 2, [](Group& group) {
    if (group.rank() == 0) {
      must(group.send_bytes(Rank{1}, 300, "bytes"));
      CHECK(must_fail(group.barrier()).code == ErrorCode::collective_mismatch);
    } else {
      const Error error = must_fail(group.recv_obj<std::string>(Rank{0}));
      CHECK(error.code == ErrorCode::codec_mismatch);
      CHECK(must(group.recv_bytes(Rank{0}, 300)).bytes == "bytes");
      CHECK(must_fail(group.all_gather_obj(1)).code == ErrorCode::collective_mismatch);
    }
    CHECK(must_fail(group.recv_obj<std::string>(Rank(group.rank()), 0ms)).operation == "recv_obj");
    must(group.barrier());
  });
}

TEST_CASE("an object that its codec refuses is told with the group's name") {
  auto server = start_server();
  auto store = connect(server);
  auto group = join(store, "g", 0, 1);
  must(group.send_obj(Rank{0}, "text"));
  const Error error = must_fail(group.recv_obj<std::vector<std::vector<int>>>(Rank{0}));
  CHECK(error.code == ErrorCode::codec_mismatch);
  CHECK(error.operation == "recv_obj");
  CHECK(error.group == "g");
  CHECK(error.epoch == group.epoch());
}

TEST_CASE("nothing in doubt: recover says so without asking for much") {
  auto server = start_server();
  auto store = connect(server);
  auto group = join(store, "g", 0, 1);
  const RecoveredRound nothing = must(group.recover());
  CHECK(nothing.round == 0);
  CHECK(!nothing.called);
}

TEST_CASE("a handle that goes ends its pending calls, and its store goes on") {
  auto server = start_server();
  auto store = connect(server);
  std::promise<Result<ReceivedBytes>> received;
  {
    auto group = join(store, "g", 0, 1);
    group.recv_bytes_async(Rank{0}, codec_id::raw, Tag(), 20s,
                           [&](Result<ReceivedBytes> result) { received.set_value(result); });
  }
  const Error error = must_fail(received.get_future().get());
  CHECK(error.code == ErrorCode::closed);
  CHECK(error.elapsed < 10s);
  must(store.set("k", "v"));
  CHECK(held_count(store, "groups") == 0);
}

TEST_CASE("a group is formed, used and regrouped through callbacks alone") {
  auto server = start_server();
  auto store = connect(server);
  std::promise<Result<std::vector<std::string>>> gathered;
  std::optional<Group> first;
  std::optional<Group> second;
  Group::create_async(store, "g", 0, 1, patience(), [&](Result<Group> formed) {
    first = must(std::move(formed));
    first->regroup_async({}, 10s, [&](Result<Group> again) {
      second = must(std::move(again));
      second->all_gather_bytes_async("x", codec_id::raw, 10s,
                                     [&](auto all) { gathered.set_value(std::move(all)); });
    });
  });
  CHECK(must(gathered.get_future().get()) == std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace muster::test
