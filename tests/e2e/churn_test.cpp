// Everything that a server and its clients hold comes and goes, again and again, in one process:
// keys, sessions, processes, namespaces, groups, streams, watchers, stores. Whatever one cycle
// leaves behind adds up, and the live bytes of the process show it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "muster/codec_raw.h"
#include "support/allocations.h"
#include "support/ranks.h"
#include "support/raw_client.h"
#include "support/scale.h"

namespace muster::test {
namespace {

constexpr int warm_cycles = 20;
constexpr int cycles = 1000;
constexpr int cycles_min = 200;  ///< fewer do not show a small leak
constexpr int of_each = 8;       ///< what leaks of one cycle leaks so many times

/// The server lets go of connections that have ended when there are 256 of them: within so many
/// cycles it does.
constexpr int window_cycles = 30;

/// The server remembers why the last 1,024 sessions ended.
constexpr int remembered_sessions = 1024;

/// It remembers what happened to groups, in a 64th of its memory: some cycles fill that.
ServerOptions of_short_memory() {
  ServerOptions options;
  options.memory_bytes_max = 2U << 20;
  return options;
}

/// What hash tables may add after the warm cycles. A leak of one small block per item is more
/// within 200 cycles.
constexpr std::int64_t growth_bytes_max = 16 * 1024;

class Churn {
 public:
  Churn() {
    must(first_.set("stays", std::string(200, 'v')));
    run_ranks(2,
              [&](int rank) { group_of(rank).emplace(join(rank_store(rank), "stays", rank, 2)); });
    while (process_count_ < remembered_sessions) processes();
  }

  void cycle() {
    const std::string name = std::to_string(++cycle_count_);
    keys(name);
    waits(name);
    processes();
    namespaces(name);
    group(name);
    failed_regroups();
  }
  int cycle_count() const { return cycle_count_; }

  /// The lowest after each of some cycles.
  std::int64_t live_bytes_in_window() {
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (int count = 0; count < window_cycles; ++count) {
      cycle();
      lowest = std::min(lowest, live_bytes());
    }
    return lowest;
  }

 private:
  /// Live bytes when all that a cycle made is gone.
  std::int64_t live_bytes() {
    await([&] { return held_count(first_, "sessions") == 2 && held_count(first_, "keys") == 1; });
    await([&] { return held_count(first_, "groups") == 1 && held_count(first_, "epochs") == 1; });
    await([&] { return held_count(first_, "namespaces") == 1; });
    CHECK(held_count(first_, "waits") == 0);
    CHECK(held_count(first_, "rounds") == 0);
    CHECK(held_count(first_, "streams") == 0);
    CHECK(held_count(first_, "objects") == 0);
    return live_bytes_of_process();
  }

  std::optional<StatelessProcessGroup>& group_of(int rank) {
    return groups_[static_cast<std::size_t>(rank)];
  }
  Store& rank_store(int rank) { return rank == 0 ? first_ : second_; }

  Store store(StoreOptions options = {}) {
    options.io_thread = io_thread_;
    return connect(server_, std::move(options));
  }

  /// Also of a session that stays: what it is told and acknowledges is not counted any more.
  void keys(const std::string& name) {
    SetOptions bound;
    bound.bind_to_session = true;
    bound.ttl = 1h;
    const std::string value(1000, 'v');
    for (int count = 0; count < of_each; ++count) {
      const std::string key = name + "/" + std::to_string(count);
      must(first_.set(key, value, bound));
      must(first_.touch(key, std::nullopt));
      CHECK_FALSE(must(first_.compare_set(key, "other", "v")).applied);
      CHECK(must(first_.append(key, value)) == 2000);
      CHECK(must(first_.take(key)).size() == 2000);
    }
    for (int count = 0; count < 5 * of_each; ++count) {  // the server keeps these answers, too
      CHECK(must_fail(first_.add("stays", 1)).code == ErrorCode::not_a_number);
    }
  }

  /// Who waits at a key is answered, gives up, or is gone before.
  void waits(const std::string& name) {
    for (int count = 0; count < of_each; ++count) {
      const std::string key = "wait/" + name + "/" + std::to_string(count);
      CHECK(must_fail(second_.get(key, 0s)).code == ErrorCode::not_found);
      second_.get_async(key, 20s, [](const Result<std::string>&) {});
      must(second_.set(key, "v"));
      CHECK(must(second_.remove(key)));
      Store leaving = store();
      leaving.take_async(key, 20s, [](const Result<std::string>&) {});
    }
  }

  void processes() {
    for (int count = 0; count < of_each; ++count) {
      RawClient client(server_.addresses().front());
      wire::ClientHello hello;
      ++process_count_;
      std::memcpy(hello.process.id.bytes.data(), &process_count_, sizeof(process_count_));
      REQUIRE(client.say_hello(hello).status == 0);
      std::string goodbye;
      wire::append_goodbye(goodbye, "done");
      client.send(goodbye);
      CHECK(client.is_closed());
    }
  }

  void namespaces(const std::string& name) {
    StoreOptions options;
    options.name_space = "of " + name;
    Store other = store(options);
    must(other.set("key", "v"));
    must(other.remove("key"));
  }

  /// Objects to a rank that leaves before it has received them, and a next epoch of those that
  /// stay.
  void group(const std::string& name) {
    run_ranks(3, [&](int rank) {
      std::optional<Store> fresh;
      Store& own = rank == 1 ? second_ : fresh.emplace(store());  // one that stays, too
      StatelessProcessGroup all = join(own, "group " + name, rank, 3);
      const GroupWatch watch = all.watch([](const Error&) {});
      CHECK(must(all.all_gather_obj<RawCodec>(std::string(3000, 'x'))).size() == 3);
      for (std::uint64_t tag = 0; rank < 2 && tag < of_each; ++tag) {
        must(all.send_obj<RawCodec>(Rank{2}, std::string("never received"), Tag{tag}));
        must(all.send_obj<RawCodec>(Rank(1 - rank), std::string("received"), Tag{tag}));
        must(all.recv_obj<std::string, RawCodec>(Rank(1 - rank), Tag{tag}));
      }
      must(all.barrier());
      if (rank == 2) return must(all.leave());
      await([&] { return held_count(own, "objects") == 0; });
      StatelessProcessGroup rest = must(all.regroup());
      must(rest.barrier());
      must(rest.leave());
    });
  }

  /// In an epoch that stays: nobody comes who would fill it.
  void failed_regroups() {
    RegroupOptions larger;
    larger.new_size = 3;
    for (int rank = 0; rank < 2; ++rank) {
      CHECK(must_fail(group_of(rank)->regroup(larger, 1ms)).code == ErrorCode::timed_out);
    }
    for (auto& stays : groups_) const GroupWatch watch = stays->watch([](const Error&) {});
  }

  Server server_ = start_server(of_short_memory());
  std::shared_ptr<IoThread> io_thread_ = IoThread::create("shared");
  Store first_ = store();
  Store second_ = store();
  std::array<std::optional<StatelessProcessGroup>, 2> groups_;
  int cycle_count_ = 0;
  int process_count_ = 0;
};

}  // namespace

TEST_CASE("what comes and goes leaves nothing behind, from cycle 20 to cycle 1,000") {
  const int cycles_run = std::max(scaled(cycles), cycles_min);
  Churn churn;
  while (churn.cycle_count() < warm_cycles) churn.cycle();
  const std::int64_t before = churn.live_bytes_in_window();
  while (churn.cycle_count() < cycles_run - window_cycles) churn.cycle();
  const std::int64_t grown = churn.live_bytes_in_window() - before;
  INFO(churn.cycle_count(), " cycles, live bytes: ", before, " and ", grown, " more");
  CHECK(grown <= growth_bytes_max);
  MESSAGE(churn.cycle_count(), " cycles, live bytes: ", before, " and ", grown, " more");
}

}  // namespace muster::test
