#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "support/ranks.h"

// Who watches a group's handle: told of what ends the epoch, whoever asks when.

namespace muster::test {
namespace {

class Told {
 public:
  std::function<void(const Error&)> teller() {
    return [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      told_.push_back(error);
    };
  }
  std::vector<Error> all() {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  void await_first() {
    await([this] { return !all().empty(); });
  }

 private:
  std::mutex mutex_;
  std::vector<Error> told_;
};

TEST_CASE("a rank that leaves is told to all who watch, and to those who come later at once") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    Told told;
    const auto watch = group.watch(told.teller());
    must(group.barrier());
    if (rank == 1) {
      must(group.leave());
      told.await_first();
      CHECK(told.all()[0].code == ErrorCode::closed);
      return;
    }
    told.await_first();
    const Error first = told.all()[0];
    CHECK(first.code == ErrorCode::rank_left);
    CHECK(first.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(first.group == "g");
    CHECK(first.epoch == group.epoch());
    Told late;
    const auto later = group.watch(late.teller());
    REQUIRE(late.all().size() == 1);
    CHECK(late.all()[0].code == ErrorCode::rank_left);
    must(group.regroup());
    await([&] { return told.all().back().code == ErrorCode::stale_epoch; });
  });
}

TEST_CASE("a store that is closed is told to who watches its groups") {
  auto server = start_server();
  auto store = connect(server);
  auto group = join(store, "g", 0, 1);
  Told told;
  const auto watch = group.watch(told.teller());
  store.close();
  told.await_first();
  CHECK(told.all()[0].code == ErrorCode::closed);
  CHECK(told.all()[0].group == "g");
}

TEST_CASE("another server in the place of the first is told to who watches") {
  std::optional<Server> server = start_disturbed_server();
  const std::string address = server->addresses().front();
  auto store = connect(*server);
  auto group = join(store, "g", 0, 1);
  Told told;
  const auto watch = group.watch(told.teller());
  server.reset();
  ServerOptions options;
  options.listen = {address};
  server = start_disturbed_server(options);
  told.await_first();
  CHECK(told.all()[0].code == ErrorCode::server_restarted);
}

TEST_CASE("a watch that has gone hears nothing, also when it goes in its handler") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    Told gone;
    Told kept;
    int count = 0;
    GroupWatch once;
    once = group.watch([&](const Error&) {
      ++count;
      once = GroupWatch();
    });
    { const auto brief = group.watch(gone.teller()); }
    const auto watch = group.watch(kept.teller());
    must(group.barrier());
    if (rank == 1) return;
    kept.await_first();
    must(group.leave());
    await([&] { return kept.all().back().code == ErrorCode::closed; });
    CHECK(gone.all().empty());
    CHECK(count == 1);
  });
}

}  // namespace
}  // namespace muster::test
