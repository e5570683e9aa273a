#include <atomic>
#include <future>
#include <set>

#include "support/frame_proxy.h"
#include "support/ranks.h"

namespace muster::test {
namespace {

TEST_CASE("every operation of a store does what it says") {
  auto server = start_server();
  auto store = connect(server);

  CHECK(must(store.set("k", "v")));
  CHECK(must(store.get("k")) == "v");
  SetOptions once;
  once.only_if_absent = true;
  CHECK(!must(store.set("k", "other", once)));
  CHECK(must_fail(store.get("none", 0ms)).code == ErrorCode::not_found);
  CHECK(must_fail(store.get("none", 50ms)).code == ErrorCode::timed_out);

  CHECK(must(store.take("k")) == "v");
  CHECK(!must(store.exists("k")));

  CHECK(must(store.add("n", 5)) == 5);
  CHECK(must(store.add("n", -7)) == -2);
  must(store.set("text", "abc"));
  CHECK(must_fail(store.add("text", 1)).code == ErrorCode::not_a_number);

  auto compared = must(store.compare_set("c", std::nullopt, "1"));
  CHECK(compared.applied);
  compared = must(store.compare_set("c", "0", "2"));
  CHECK(!compared.applied);
  CHECK(compared.current == "1");
  compared = must(store.compare_set("absent", "0", "2"));
  CHECK(!compared.applied);
  CHECK(!compared.current);

  CHECK(must(store.append("a", "xy")) == 2);
  CHECK(must(store.append("a", std::string("\0z", 2))) == 4);
  CHECK(must(store.get("a")) == std::string("xy\0z", 4));

  must(store.touch("a", 10s));
  CHECK(must_fail(store.touch("none", 10s)).code == ErrorCode::not_found);
  CHECK(must(store.remove("a")));
  CHECK(!must(store.remove("a")));
}

TEST_CASE("operations on many keys") {
  auto server = start_server();
  auto store = connect(server);
  must(store.multi_set({{"m/1", "one"}, {"m/2", "two"}, {"m/3", ""}}));
  const auto values = must(store.multi_get({"m/2", "none", "m/3"}));
  REQUIRE(values.size() == 3);
  CHECK(values[0] == "two");
  CHECK(!values[1]);
  CHECK(values[2] == "");
  CHECK(must(store.multi_exists({"m/1", "none"})) == std::vector<bool>{true, false});
  must(store.wait({"m/1", "m/2"}));
  CHECK(must_fail(store.wait({"m/1", "none"}, 50ms)).code == ErrorCode::timed_out);
  CHECK(must(store.multi_remove({"m/1", "m/2", "none"})) == 2);

  for (int i = 0; i < 300; ++i) must(store.set("l/" + std::to_string(i), "v"));
  std::multiset<std::string> seen;
  std::uint64_t cursor = 0;
  do {
    const KeyPage page = must(store.list("l/", cursor));
    for (const KeyInfo& key : page.keys) seen.insert(key.key);
    cursor = page.cursor;
  } while (cursor != 0);
  CHECK(seen.size() == 300);
  CHECK(std::set<std::string>(seen.begin(), seen.end()).size() == 300);
}

TEST_CASE("a key with a time to live goes, a bound key goes with its store") {
  auto server = start_server();
  auto store = connect(server);
  SetOptions brief;
  brief.ttl = 50ms;
  must(store.set("brief", "v", brief));
  await([&] { return !must(store.exists("brief")); });
  {
    auto other = connect(server);
    SetOptions bound;
    bound.bind_to_session = true;
    must(other.set("bound", "v", bound));
    CHECK(must(store.exists("bound")));
  }
  await([&] { return !must(store.exists("bound")); });
}

TEST_CASE("what breaks a limit or a rule is refused before it is sent") {
  auto server = start_server();
  auto store = connect(server);
  const Limits limits = store.limits();
  CHECK(limits.key_bytes_max == 1024);

  Error error = must_fail(store.set(std::string(1025, 'k'), "v"));
  CHECK(error.code == ErrorCode::too_large);
  CHECK(error.actual == 1025);
  CHECK(error.limit == 1024);
  CHECK(error.operation == "set");
  CHECK(error.decided_by == "client");
  error = must_fail(store.set("k", std::string(limits.value_bytes_max + 1, 'v')));
  CHECK(error.code == ErrorCode::too_large);
  CHECK(error.limit == limits.value_bytes_max);
  const std::vector<std::string_view> many(limits.keys_per_operation_max + 1, "k");
  CHECK(must_fail(store.multi_exists(many)).code == ErrorCode::too_large);

  CHECK(must_fail(store.get("")).code == ErrorCode::invalid_argument);
  CHECK(must_fail(store.get("k", -2us)).code == ErrorCode::invalid_argument);
  SetOptions never;
  never.ttl = 0ms;
  CHECK(must_fail(store.set("k", "v", never)).code == ErrorCode::invalid_argument);
  CHECK(must(store.set(std::string(1024, 'k'), std::string(limits.value_bytes_max, 'v'))));
}

TEST_CASE("a value longer than a socket takes at once comes back as it was, of equal bytes too") {
  auto server = start_server();
  auto store = connect(server);
  const std::string value(store.limits().value_bytes_max, 'v');
  for (int round = 0; round < 3; ++round) {
    must(store.set("k", value));
    CHECK((must(store.get("k")) == value));
    must(store.set("next", "as it was"));  // nothing of the value is left on the connection
    CHECK(must(store.get("next")) == "as it was");
  }
}

TEST_CASE("a client that reads gets all of several long replies at once") {
  auto server = start_server();
  auto store = connect(server);
  std::vector<std::string> large_keys;
  for (int index = 0; index < 20; ++index) large_keys.push_back("k" + std::to_string(index));
  const std::string value(1'000'000, 'v');
  for (const std::string& key : large_keys) must(store.set(key, value));
  std::vector<std::future<bool>> readers;
  for (int count = 0; count < 3; ++count) {
    readers.push_back(std::async(std::launch::async, [&] {
      const auto values = store.multi_get(large_keys, 30s);
      return values.has_value() && values->size() == large_keys.size() && values->back() == value;
    }));
  }
  for (std::future<bool>& reader : readers) CHECK(reader.get());
}

TEST_CASE("an error tells the operation, the time and the place") {
  auto server = start_server();
  auto store = connect(server);
  const Error error = must_fail(store.get("none", 60ms));
  CHECK(error.code == ErrorCode::timed_out);
  CHECK(error.operation == "get");
  CHECK(error.decided_by == "server");
  CHECK(error.where == server.addresses().front());
  CHECK(error.elapsed >= 60ms);
  CHECK(error.elapsed < 5s);
}

TEST_CASE("a get that waits does not block a set of another thread on the same store") {
  auto server = start_server();
  auto store = connect(server);
  std::thread waiting([&] { CHECK(must(store.get("late")) == "v"); });
  for (int i = 0; i < 100; ++i) must(store.set("other", "v"));
  must(store.set("late", "v"));
  waiting.join();
}

TEST_CASE("many threads on one store") {
  auto server = start_server();
  auto store = connect(server);
  constexpr int threads = 8;
  constexpr int calls = 200;
  run_ranks(threads, [&](int thread) {
    const std::string own = "own/" + std::to_string(thread);
    for (int i = 0; i < calls; ++i) {
      must(store.add("sum", 1));
      must(store.set(own, std::to_string(i)));
      CHECK(must(store.get(own)) == std::to_string(i));
    }
  });
  CHECK(must(store.add("sum", 0)) == threads * calls);
}

TEST_CASE("many stores share one I/O thread") {
  auto server = start_server();
  StoreOptions options;
  options.io_thread = IoThread::create("shared");
  std::vector<Store> stores;
  for (int i = 0; i < 100; ++i) stores.push_back(connect(server, options));
  for (Store& store : stores) must(store.add("n", 1));
  CHECK(must(stores.front().add("n", 0)) == 100);
}

TEST_CASE("namespaces do not see each other") {
  auto server = start_server();
  StoreOptions one;
  one.name_space = "one";
  auto first = connect(server, one);
  auto second = connect(server);
  must(first.set("k", "1"));
  CHECK(!must(second.exists("k")));
}

TEST_CASE("an observer uses keys and takes no part in groups, and no stop waits for it") {
  auto server = start_server();
  StoreOptions options;
  options.role = Role::observer;
  auto observer = connect(server, std::move(options));
  must(observer.set("k", "v"));
  CHECK(must(observer.get("k")) == "v");
  const auto joined = StatelessProcessGroup::create(observer, "g", 0, 1, patience());
  CHECK(must_fail(joined).code == ErrorCode::permission_denied);
  CHECK(held_count(observer, "observers") == 1);
  CHECK(server.stop("all done", 20s) == 0);
}

TEST_CASE("a store whose connection breaks before its first call has its session") {
  auto server = start_disturbed_server();
  FrameProxy proxy(server.addresses().front());
  auto store = connect(proxy.address());
  proxy.cut();
  CHECK(must(store.set("k", "v")));
  proxy.cut();
  CHECK(must(store.get("k")) == "v");
}

TEST_CASE("a store waits for a server that starts later") {
  std::string address;
  {
    auto server = start_server();
    address = server.addresses().front();
  }
  std::promise<void> refused;
  std::atomic<int> refusals{0};
  std::thread late([&] {
    refused.get_future().wait();
    ServerOptions options;
    options.listen = {address};
    auto server = start_server(options);
    auto store = connect(server);
    must(store.wait({"done"}));
  });
  StoreOptions options;
  options.logger = [&](LogLevel, std::string_view line) {
    const bool is_refusal = line.find("cannot connect") != std::string_view::npos;
    if (is_refusal && ++refusals == 3) refused.set_value();
  };
  auto store = must(Store::connect(address, options, 20s));
  must(store.set("done", ""));
  late.join();
}

TEST_CASE("what a server says reaches a store's log as text on one line") {
  auto server = start_disturbed_server();
  std::promise<std::string> parting;
  std::atomic<bool> is_told{false};
  StoreOptions options;
  options.logger = [&](LogLevel, std::string_view line) {
    const bool is_parting = line.find("all done") != std::string_view::npos;
    if (is_parting && !is_told.exchange(true)) parting.set_value(std::string(line));
  };
  auto store = must(Store::connect(server.addresses().front(), options, 20s));
  server.stop("all done\n\u009b\u202e");
  const std::string line = parting.get_future().get();
  CHECK(line.find("all done\\x0a\\u009b\\u202e") != std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("a connect that fails says what it tried and why") {
  std::string address;
  {
    auto server = start_server();
    address = server.addresses().front();
  }
  Error error = must_fail(Store::connect(address, {}, 300ms));
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(error.operation == "connect");
  CHECK(error.where == address);
  CHECK(error.elapsed >= 300ms);
  CHECK(error.elapsed < 10s);

  error = must_fail(Store::connect("no-such-host.invalid:1", {}, 300ms));
  CHECK(error.code == ErrorCode::unavailable);
  for (const char* nonsense : {"", "host", "host:", "host:99999", "[::1", "unix:"}) {
    CHECK(must_fail(Store::connect(nonsense, {}, 1s)).code == ErrorCode::invalid_argument);
  }
  CHECK(must_fail(Store::connect(address, {}, -5ms)).code == ErrorCode::invalid_argument);
  StoreOptions long_label;
  long_label.label = std::string(65, 'x');
  CHECK(must_fail(Store::connect(address, long_label, 1s)).code == ErrorCode::invalid_argument);
  StoreOptions restless;
  restless.busy_poll = muster::busy_poll_max + 1us;
  CHECK(must_fail(Store::connect(address, restless, 1s)).code == ErrorCode::invalid_argument);
}

TEST_CASE("calls after the server's goodbye still tell its reason") {
  auto server = start_server();
  auto store = connect(server);
  must(store.set("k", "v"));
  server.stop("maintenance at noon");
  const auto tells_reason = [&] {
    const Error error = must_fail(store.get("k", 300ms));
    CHECK(error.code == ErrorCode::unavailable);
    return error.detail.find("maintenance at noon") != std::string::npos;
  };
  for (int call = 0; call < 3; ++call) CHECK(tells_reason());
}

TEST_CASE("after the server was restarted every call says so until the store is reopened") {
  auto first = std::make_unique<Server>(start_disturbed_server());
  const std::string address = first->addresses().front();
  std::promise<ErrorCode> ended;
  StoreOptions options;
  options.on_session_end = [&](const Error& error) { ended.set_value(error.code); };
  auto store = connect(address, options);
  must(store.set("k", "v"));
  const std::uint64_t before = store.incarnation();

  first.reset();
  ServerOptions same;
  same.listen = {address};
  auto second = start_disturbed_server(same);
  CHECK(ended.get_future().get() == ErrorCode::server_restarted);
  const Error error = must_fail(store.get("k", 5s));
  CHECK(error.code == ErrorCode::server_restarted);
  CHECK(error.expected == before);
  CHECK(error.actual == second.incarnation());

  must(store.reopen());
  CHECK(must_fail(store.get("k", 0ms)).code == ErrorCode::not_found);
  CHECK(store.incarnation() == second.incarnation());
  must(store.reopen());  // nothing to do
}

TEST_CASE("a further handle is of the same session, and keeps it") {
  auto server = start_server();
  std::optional<Store> store = connect(server);
  SetOptions bound;
  bound.bind_to_session = true;
  must(store->set("k", "v", bound));
  Store further = store->share();
  store.reset();
  CHECK(must(further.get("k", 0ms)) == "v");
  Store last = further.share();
  further.close();
  CHECK(must_fail(last.get("k", 0ms)).code == ErrorCode::closed);
  Store moved = std::move(last);
  CHECK(must_fail(last.share().get("k", 0ms)).code == ErrorCode::closed);
}

TEST_CASE("a further handle of a group's store outlives the group") {
  auto server = start_server();
  std::optional<StatelessProcessGroup> group;
  {
    auto store = connect(server);
    group = join(store, "g", 0, 1);
  }
  Store further = group->store().share();
  must(group->close());
  group.reset();
  must(further.set("k", "v"));
}

}  // namespace
}  // namespace muster::test
