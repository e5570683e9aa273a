#include <poll.h>

#include <filesystem>
#include <future>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "muster/codec_raw.h"
#include "muster/inspect.h"
#include "support/child.h"
#include "support/ranks.h"

// A host with a loop of its own and one thread: its server, stores and groups are served between
// its other work. A program of its own, because it counts the threads of its process.

namespace muster::test {
namespace {

auto thread_count() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

/// The host: its loop waits in poll, for Muster alone.
class Host {
 public:
  ~Host() { io_->finish(); }

  const std::shared_ptr<IoThread>& io() const { return io_; }

  ServerOptions server_options() const {
    ServerOptions options;
    options.io_thread = io_;
    return options;
  }

  StoreOptions store_options() const {
    StoreOptions options;
    options.io_thread = io_;
    return options;
  }

  bool is_ready(std::chrono::milliseconds at_most = 20s) const {
    pollfd entry{io_->descriptor(), POLLIN, 0};
    return ::poll(&entry, 1, static_cast<int>(at_most.count())) == 1;
  }

  template <class Condition>
  void serve_until(Condition is_over) const {
    while (!is_over()) {
      REQUIRE(is_ready());
      io_->serve_ready();
    }
  }

  /// What `begin(handler)` gives.
  template <class T, class Begin>
  Result<T> call(Begin begin) const {
    std::optional<Result<T>> result;
    begin([&result](Result<T> given) { result.emplace(std::move(given)); });
    CHECK_FALSE(result);  // not before the call has returned
    serve_until([&] { return result.has_value(); });
    return *std::move(result);
  }

  Store connect(const std::string& address) const { return connect(address, store_options()); }
  Store connect(const std::string& address, StoreOptions options) const {
    return must(call<Store>([&](Handler<Store> handler) {
      Store::connect_async(address, std::move(options), 20s, std::move(handler));
    }));
  }

 private:
  const std::shared_ptr<IoThread> io_ = IoThread::create_for_host_loop();
};

Result<std::string> get(const Host& host, Store& store, const std::string& key, Duration timeout) {
  return host.call<std::string>(
      [&](auto handler) { store.get_async(key, timeout, std::move(handler)); });
}

Result<bool> set(const Host& host, Store& store, const std::string& key) {
  return host.call<bool>(
      [&](auto handler) { store.set_async(key, "value", {}, 20s, std::move(handler)); });
}

/// Forms a group of all stores, a rank each.
std::vector<StatelessProcessGroup> form(const Host& host, std::vector<Store>& stores) {
  std::vector<std::optional<StatelessProcessGroup>> made(stores.size());
  std::size_t made_count = 0;
  for (std::size_t rank = 0; rank < stores.size(); ++rank) {
    StatelessProcessGroup::create_async(stores[rank], "group", static_cast<int>(rank),
                                        static_cast<int>(stores.size()), patience(),
                                        [&, rank](Result<StatelessProcessGroup> group) {
                                          made[rank].emplace(must(std::move(group)));
                                          ++made_count;
                                        });
  }
  host.serve_until([&] { return made_count == stores.size(); });
  std::vector<StatelessProcessGroup> groups;
  for (auto& group : made) groups.push_back(*std::move(group));
  return groups;
}

TEST_CASE("a server, stores and a group of them have one thread, which is the host's") {
  const auto threads_before = thread_count();
  const Host host;
  Server server = start_server(host.server_options());
  std::vector<Store> stores;
  for (int rank = 0; rank < 3; ++rank) stores.push_back(host.connect(server.addresses().front()));
  CHECK(must(set(host, stores[0], "key")));
  CHECK(must(get(host, stores[1], "key", 20s)) == "value");

  std::vector<StatelessProcessGroup> groups = form(host, stores);
  std::vector<std::vector<std::string>> gathered;
  for (StatelessProcessGroup& group : groups) {
    group.all_gather_bytes_async(std::to_string(group.rank()), RawCodec::id, 20s,
                                 [&](auto all) { gathered.push_back(must(std::move(all))); });
  }
  host.serve_until([&] { return gathered.size() == 3; });
  CHECK(gathered == std::vector<std::vector<std::string>>(3, {"0", "1", "2"}));
  int passed_count = 0;
  for (StatelessProcessGroup& group : groups) {
    group.barrier_async(20s, [&](auto passed) {
      CHECK(must(std::move(passed)).unconfirmed.empty());
      ++passed_count;
    });
  }
  host.serve_until([&] { return passed_count == 3; });
  CHECK(thread_count() == threads_before);
  groups.clear();
  stores.clear();
  CHECK(server.stop("the end", 5s) == 0);
  CHECK(thread_count() == threads_before);
}

TEST_CASE("long values take many turns, and none of them waits") {
  const Host host;
  Server server = start_server(host.server_options());
  Store store = host.connect(server.addresses().front());
  const std::string value(8u << 20, 'v');
  CHECK(must(host.call<bool>(
      [&](auto handler) { store.set_async("key", value, {}, 20s, std::move(handler)); })));
  CHECK(must(get(host, store, "key", 20s)) == value);
}

TEST_CASE("blocking calls are refused at once on the thread that serves") {
  const Host host;
  Server server = start_server(host.server_options());
  const std::string address = server.addresses().front();
  const auto began = std::chrono::steady_clock::now();
  CHECK(must_fail(Store::connect(address, host.store_options(), 20s)).code ==
        ErrorCode::would_deadlock);
  HostedGroupOptions options;
  options.store = host.store_options();
  CHECK(must_fail(StatelessProcessGroup::create("127.0.0.1", 1, 1, 2, 1h, 20s, options)).code ==
        ErrorCode::would_deadlock);
  Store store = host.connect(address);
  CHECK(must_fail(store.get("key", 20s)).code == ErrorCode::would_deadlock);
  bool is_refused = false;
  store.get_async("key", Duration(0), [&](const Result<std::string>&) {
    is_refused = must_fail(store.get("key", 20s)).code == ErrorCode::would_deadlock;
  });
  host.serve_until([&] { return is_refused; });
  CHECK(std::chrono::steady_clock::now() - began < 10s);
}

TEST_CASE("a refused call runs its handler in a later turn, also when it is made in a handler") {
  const Host host;
  Server server = start_server(host.server_options());
  StoreOptions options = host.store_options();
  SUBCASE("handlers where they run by default") {}
  SUBCASE("inline handlers") { options.handlers = HandlerPlace::io_thread; }
  std::vector<Store> stores;
  stores.push_back(host.connect(server.addresses().front(), options));
  std::vector<StatelessProcessGroup> groups = form(host, stores);
  int refused_count = 0;
  const auto is_refused = [&](const auto& result) {
    CHECK(must_fail(result).code == ErrorCode::invalid_argument);
    ++refused_count;
  };
  const auto call_all = [&] {
    stores[0].get_async("key", -5s, is_refused);
    stores[0].reopen_async(-5s, is_refused);
    groups[0].send_bytes_async(Rank{7}, RawCodec::id, "bytes", Tag(), 20s, is_refused);
    Store::connect_async("nonsense", options, 20s, is_refused);
  };
  call_all();
  CHECK(refused_count == 0);
  host.serve_until([&] { return refused_count == 4; });
  stores[0].exists_async("key", 20s, [&](const auto&) {
    call_all();
    CHECK(refused_count == 4);
  });
  host.serve_until([&] { return refused_count == 8; });
}

TEST_CASE("deadlines and heartbeats come by the loop's own clock") {
  const Host host;
  ServerOptions options = host.server_options();
  options.heartbeat = 100ms;
  options.session_timeout = 5s;
  Server server = start_server(options);
  Store store = host.connect(server.addresses().front());
  CHECK(must_fail(get(host, store, "missing", 50ms)).code == ErrorCode::timed_out);
  const auto until = std::chrono::steady_clock::now() + 1s;
  int turn_count = 0;
  while (std::chrono::steady_clock::now() < until) {
    if (host.is_ready(100ms)) turn_count += host.io()->serve_ready() ? 1 : 0;
  }
  CHECK(turn_count >= 5);     // of some 10 heartbeats
  CHECK(turn_count < 5'000);  // and no more than something brings about
}

TEST_CASE("other threads make blocking calls, which the host serves") {
  const Host host;
  Server server = start_server(host.server_options());
  Store store = host.connect(server.addresses().front());
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    for (int count = 0; count < 100; ++count) must(store.add("number", 1, 20s));
    is_over = true;
    host.io()->wake();
  });
  host.serve_until([&] { return is_over.load(); });
  other.join();
  CHECK(must(get(host, store, "number", 20s)) == "100");
}

TEST_CASE("nothing is lost while the host does not serve") {
  ServerOptions options;
  options.heartbeat = 100ms;
  options.session_timeout = 5s;
  Server server = start_server(options);
  const Host host;
  Store store = host.connect(server.addresses().front());
  std::optional<std::string> got;
  store.get_async("key", 20s, [&](auto value) { got = must(std::move(value)); });
  host.io()->serve_ready();
  std::thread([&] {
    Store other = connect(server);
    must(other.set("key", "value"));
    let_pass(1s);  // ten heartbeats
  }).join();
  CHECK_FALSE(got);
  host.serve_until([&] { return got.has_value(); });
  CHECK(*got == "value");
  CHECK(must(set(host, store, "another")));
}

TEST_CASE("a store that goes says goodbye at once, and its handlers run in the next turn") {
  Server server = start_server();
  const Host host;
  std::optional<Store> store(host.connect(server.addresses().front()));
  Store other = connect(server);
  std::optional<ErrorCode> ended;
  SUBCASE("handlers where they run by default") {}
  SUBCASE("inline handlers") {
    StoreOptions options = host.store_options();
    options.handlers = HandlerPlace::io_thread;
    store.emplace(host.connect(server.addresses().front(), options));
  }
  store->get_async("missing", 20s, [&](const auto& result) { ended = must_fail(result).code; });
  store.reset();
  CHECK_FALSE(ended);
  await([&] { return must(inspect_sessions(other)).size() == 1; });  // nobody has served
  host.serve_until([&] { return ended.has_value(); });
  CHECK(*ended == ErrorCode::closed);
}

TEST_CASE("what is pending when the host is gone ends with its store") {
  Server server = start_server();
  std::optional<Host> host(std::in_place);
  std::optional<Store> store(host->connect(server.addresses().front()));
  std::optional<ErrorCode> ended;
  store->get_async("missing", 20s, [&](const auto& result) { ended = must_fail(result).code; });
  const std::weak_ptr<IoThread> io = host->io();
  SUBCASE("on one thread") { host.reset(); }
  SUBCASE("the host had a thread of its own") {
    std::thread([&] {
      host->io()->serve_ready();
      host.reset();
    }).join();
  }
  CHECK_FALSE(ended);
  store.reset();
  CHECK(ended == ErrorCode::closed);
  CHECK(io.expired());
}

TEST_CASE("the server goes first, and the store hears it") {
  const Host host;
  std::optional<Server> server(start_server(host.server_options()));
  Store store = host.connect(server->addresses().front());
  std::optional<ErrorCode> ended;
  store.get_async("missing", 3s, [&](const auto& result) { ended = must_fail(result).code; });
  host.io()->serve_ready();
  server.reset();
  host.serve_until([&] { return ended.has_value(); });
  CHECK(*ended == ErrorCode::unavailable);
}

TEST_CASE("a child that is forked leaves the parent's sockets alone") {
  const Host host;
  Server server = start_server(host.server_options());
  Store store = host.connect(server.addresses().front());
  CHECK(in_child([&] {
          std::optional<ErrorCode> code;
          store.get_async("key", 1s, [&](const auto& result) { code = result.error().code; });
          if (code != ErrorCode::forked || host.io()->serve_ready()) return 1;
          const Store gone = std::move(store);
          return 0;
        }) == 0);
  CHECK(must(set(host, store, "key")));
}

}  // namespace
}  // namespace muster::test
