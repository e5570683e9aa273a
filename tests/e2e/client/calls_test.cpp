// How calls run and end: handlers, cancel, close, moved-from objects, forked children.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <mutex>

#include "support/ranks.h"

namespace muster::test {
namespace {

template <class T>
Handler<T> into(std::promise<Result<T>>& promise) {
  return [&promise](Result<T> result) { promise.set_value(std::move(result)); };
}

template <class T>
Result<T> result_of(std::promise<Result<T>>& promise) {
  auto future = promise.get_future();
  REQUIRE(future.wait_for(20s) == std::future_status::ready);
  return future.get();
}

/// Collects what is logged.
struct LogLines {
  std::mutex mutex;
  std::vector<std::string> lines;

  Logger logger() {
    return [this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex);
      lines.emplace_back(line);
    };
  }
  bool has(std::string_view part) {
    const std::lock_guard lock(mutex);
    for (const std::string& line : lines) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }
};

TEST_CASE("each operation has a callback form") {
  auto server = start_server();
  auto store = connect(server);
  std::promise<Result<bool>> set, removed, exists;
  std::promise<Result<std::string>> got, taken, popped;
  std::promise<Result<std::int64_t>> added;
  std::promise<Result<Compared>> compared;
  std::promise<Result<std::uint64_t>> appended, all_removed, pushed, counted;
  std::promise<Result<void>> touched, waited, all_set;
  std::promise<Result<std::vector<bool>>> present;
  std::promise<Result<std::vector<std::optional<std::string>>>> values;
  std::promise<Result<KeyPage>> page;
  std::promise<Result<std::vector<std::pair<std::string, std::string>>>> status;

  // All in flight at once; the server answers them in the order of calling.
  store.set_async("k", "v", {}, 10s, into(set));
  store.get_async("k", 10s, into(got));
  store.add_async("n", 3, 10s, into(added));
  store.compare_set_async("k", "v", "w", {}, 10s, into(compared));
  store.append_async("k", "x", 10s, into(appended));
  store.touch_async("k", 10s, 10s, into(touched));
  store.exists_async("k", 10s, into(exists));
  store.take_async("k", 10s, into(taken));
  store.multi_set_async({{"a", "1"}, {"b", "2"}}, {}, 10s, into(all_set));
  store.wait_async({"a", "b"}, 10s, into(waited));
  store.multi_get_async({"a", "none"}, 10s, into(values));
  store.multi_exists_async({"a", "none"}, 10s, into(present));
  store.list_async("a", 0, 10s, into(page));
  store.remove_async("a", 10s, into(removed));
  store.multi_remove_async({"a", "b"}, 10s, into(all_removed));
  store.queue_pop_async("q", 10s, into(popped));
  store.queue_push_async("q", "item", 10s, into(pushed));
  store.queue_length_async("q", 10s, into(counted));
  store.status_async(10s, into(status));

  CHECK(must(result_of(set)));
  CHECK(must(result_of(got)) == "v");
  CHECK(must(result_of(added)) == 3);
  CHECK(must(result_of(compared)).applied);
  CHECK(must(result_of(appended)) == 2);
  must(result_of(touched));
  CHECK(must(result_of(exists)));
  CHECK(must(result_of(taken)) == "wx");
  must(result_of(all_set));
  must(result_of(waited));
  CHECK(must(result_of(values))[0] == "1");
  CHECK(must(result_of(present)) == std::vector<bool>{true, false});
  CHECK(must(result_of(page)).keys.size() == 1);
  CHECK(must(result_of(removed)));
  CHECK(must(result_of(all_removed)) == 1);
  CHECK(must(result_of(popped)) == "item");
  CHECK(must(result_of(pushed)) == 1);
  CHECK(must(result_of(counted)) == 0);
  CHECK(!must(result_of(status)).empty());
}

TEST_CASE("a store connects and reopens without blocking") {
  auto server = start_server();
  std::promise<Result<Store>> connected;
  Store::connect_async(server.addresses().front(), {}, 10s, into(connected));
  auto store = must(result_of(connected));
  must(store.set("k", "v"));
  std::promise<Result<void>> reopened;
  store.reopen_async(10s, into(reopened));
  must(result_of(reopened));

  std::promise<Result<Store>> refused;
  Store::connect_async("nonsense", {}, 10s, into(refused));
  CHECK(must_fail(result_of(refused)).code == ErrorCode::invalid_argument);
}

TEST_CASE("an inline handler whose call is refused has returned before the next handler runs") {
  auto server = start_server();
  StoreOptions options;
  options.handlers = HandlerPlace::io_thread;
  auto store = connect(server, options);
  std::promise<Result<std::string>> refused;
  std::promise<Result<void>> not_reopened;
  std::promise<Result<Store>> not_connected;
  bool is_inside = false;
  const auto outside_into = [&](auto& promise) {
    return [&is_inside, into_promise = into(promise)](auto result) {
      CHECK_FALSE(is_inside);
      into_promise(std::move(result));
    };
  };
  store.exists_async("key", 10s, [&](const auto&) {
    is_inside = true;
    store.get_async("key", -5s, outside_into(refused));
    store.reopen_async(-5s, outside_into(not_reopened));
    Store::connect_async("nonsense", {}, 10s, into(not_connected));
    is_inside = false;
  });
  CHECK(must_fail(result_of(refused)).code == ErrorCode::invalid_argument);
  CHECK(must_fail(result_of(not_reopened)).code == ErrorCode::invalid_argument);
  CHECK(must_fail(result_of(not_connected)).code == ErrorCode::invalid_argument);
}

TEST_CASE("a slow handler and one that throws are logged, and nothing else suffers") {
  auto server = start_server();
  LogLines log;
  StoreOptions options;
  options.logger = log.logger();
  auto store = connect(server, options);
  std::promise<void> release;
  std::atomic<bool> slow_is_over{false};
  store.set_async("slow", "v", {}, 10s, [&](Result<bool>) {
    release.get_future().wait();
    let_pass(110ms);
    slow_is_over = true;
  });
  must(store.set("k", "v"));  // does not wait for the handler
  CHECK(!slow_is_over);
  release.set_value();
  store.set_async("k", "v", {}, 10s, [](Result<bool>) { throw std::runtime_error("mistake"); });
  store.set_async("k", "v", {}, 10s, [](Result<bool>) { throw 7; });
  std::promise<Result<bool>> last;
  store.set_async("k", "v", {}, 10s, into(last));
  CHECK(must(result_of(last)));
  CHECK(slow_is_over);
  await([&] { return log.has("the handler of set took"); });
  CHECK(log.has("threw: mistake"));
  CHECK(log.has("no std::exception"));
}

TEST_CASE("a handler on the handler thread may make blocking calls") {
  auto server = start_server();
  auto store = connect(server);
  std::promise<Result<std::string>> got;
  store.set_async("k", "v", {}, 10s, [&](Result<bool>) { got.set_value(store.get("k", 5s)); });
  CHECK(must(result_of(got)) == "v");
}

TEST_CASE("a blocking call from an inline handler would deadlock, and says so") {
  auto server = start_server();
  StoreOptions options;
  options.handlers = HandlerPlace::io_thread;
  auto store = connect(server, options);
  auto other = connect(server);
  std::promise<Result<std::string>> own, others, callback;
  store.set_async("k", "v", {}, 10s, [&](Result<bool>) {
    own.set_value(store.get("k"));
    others.set_value(other.get("k"));  // heartbeats of the first store would wait
    store.get_async("k", 5s, into(callback));
  });
  CHECK(must_fail(result_of(own)).code == ErrorCode::would_deadlock);
  CHECK(must_fail(result_of(others)).code == ErrorCode::would_deadlock);
  CHECK(must(result_of(callback)) == "v");
}

TEST_CASE("handlers run on an executor that the application gives") {
  auto server = start_server();
  std::mutex mutex;
  std::vector<std::function<void()>> queue;
  StoreOptions options;
  options.executor = [&](std::function<void()> work) {
    const std::lock_guard lock(mutex);
    queue.push_back(std::move(work));
  };
  auto store = connect(server, options);
  bool called = false;
  store.set_async("k", "v", {}, 10s, [&](Result<bool> result) { called = must(result); });
  await([&] {
    const std::lock_guard lock(mutex);
    return !queue.empty();
  });
  CHECK(!called);
  queue.front()();
  CHECK(called);
}

Store* store_to_cancel = nullptr;
void cancel_on_signal(int) { store_to_cancel->cancel(); }

TEST_CASE("a signal handler cancels a call that waits, and later calls are not concerned") {
  auto server = start_server();
  auto store = connect(server);
  store_to_cancel = &store;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = cancel_on_signal;
  ::sigaction(SIGUSR1, &action, &before);
  auto observer = connect(server);
  for (int round = 0; round < 20; ++round) {
    const pthread_t self = ::pthread_self();
    std::thread interrupts([&] {
      if (round % 2 == 0) await([&] { return held_count(observer, "waits") == 1; });
      ::pthread_kill(self, SIGUSR1);
    });
    const auto begun = std::chrono::steady_clock::now();
    const auto result = store.get("never", round % 2 == 0 ? 20s : 1s);
    interrupts.join();
    const Error error = must_fail(result);
    const bool was_early = round % 2 != 0 && error.code == ErrorCode::timed_out;
    CHECK((was_early || error.code == ErrorCode::cancelled));
    if (!was_early) CHECK(std::chrono::steady_clock::now() - begun < 10s);
    CHECK(error.operation == "get");
    must(store.set("k", "v"));
  }
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("cancel ends all calls that have begun") {
  auto server = start_server();
  auto store = connect(server);
  constexpr int calls = 50;
  std::atomic<int> cancelled{0};
  for (int i = 0; i < calls; ++i) {
    store.get_async("never", 60s, [&](Result<std::string> result) {
      if (!result && result.error().code == ErrorCode::cancelled) ++cancelled;
    });
  }
  store.cancel();
  std::promise<Result<std::string>> later;
  store.get_async("later", 10s, into(later));
  await([&] { return cancelled == calls; });
  must(store.set("later", "v"));
  CHECK(must(result_of(later)) == "v");
}

TEST_CASE("closing ends every pending call, in either form, and refuses later ones") {
  auto server = start_server();
  auto store = connect(server);
  std::promise<Result<std::string>> pending;
  store.get_async("never", 60s, into(pending));
  std::promise<Result<std::string>> blocked;
  std::thread blocking([&] { blocked.set_value(store.get("never", 60s)); });
  await([&] { return held_count(store, "waits") == 2; });
  store.close();
  CHECK(must_fail(result_of(pending)).code == ErrorCode::closed);
  CHECK(must_fail(result_of(blocked)).code == ErrorCode::closed);
  blocking.join();
  CHECK(must_fail(store.get("k")).code == ErrorCode::closed);
  CHECK(must_fail(store.reopen(1s)).code == ErrorCode::closed);
  std::promise<Result<std::string>> late;
  store.get_async("k", 5s, into(late));
  CHECK(must_fail(result_of(late)).code == ErrorCode::closed);
  store.close();
}

TEST_CASE("a store that goes ends its pending calls") {
  auto server = start_server();
  std::promise<Result<std::string>> pending;
  {
    auto store = connect(server);
    store.get_async("never", 60s, into(pending));
  }
  CHECK(must_fail(result_of(pending)).code == ErrorCode::closed);
}

TEST_CASE("a handler may close and drop the store that calls it") {
  auto server = start_server();
  for (const auto place : {HandlerPlace::handler_thread, HandlerPlace::io_thread}) {
    StoreOptions options;
    options.handlers = place;
    auto store = std::make_unique<Store>(connect(server, options));
    std::promise<Result<bool>> done;
    store->set_async("k", "v", {}, 10s, [&](Result<bool> result) {
      store.reset();
      done.set_value(std::move(result));
    });
    CHECK(must(result_of(done)));
  }
}

TEST_CASE("an object that was moved from refuses every call and crashes in none") {
  auto server = start_server();
  auto store = connect(server);
  Store other = std::move(store);
  CHECK(must_fail(store.get("k")).code == ErrorCode::closed);
  CHECK(must_fail(store.reopen(1s)).code == ErrorCode::closed);
  std::promise<Result<bool>> set;
  store.set_async("k", "v", {}, 1s, into(set));
  CHECK(must_fail(result_of(set)).code == ErrorCode::closed);
  store.cancel();
  store.close();
  CHECK(store.address().empty());
  CHECK(store.limits().key_bytes_max == 0);
  CHECK(store.incarnation() == 0);
  CHECK(must_fail(StatelessProcessGroup::create(store, "g", 0, 1)).code == ErrorCode::closed);

  auto group = join(other, "g", 0, 1);
  auto moved = std::move(group);
  CHECK(must_fail(group.barrier()).code == ErrorCode::closed);
  CHECK(group.rank() == -1);
  CHECK(group.name().empty());
  CHECK(must_fail(group.store().get("k")).code == ErrorCode::closed);
  group.cancel();
  must(moved.barrier());
}

TEST_CASE("a forked child gets `forked` from every call, and the parent goes on") {
  auto server = start_server();
  auto store = std::make_unique<Store>(connect(server));
  auto group = std::make_unique<StatelessProcessGroup>(join(*store, "g", 0, 1));
  must(store->set("k", "v"));
  const auto io_thread = IoThread::create();
  std::promise<Result<std::string>> waiting;
  Call call = store->get_async("later", 60s, into(waiting));
  const pid_t child = ::fork();
  if (child == 0) {
    // No checks of doctest here: it belongs to the parent.
    const auto is_forked = [](const auto& result) {
      return !result.has_value() && result.error().code == ErrorCode::forked;
    };
    bool right = is_forked(store->get("k")) && is_forked(store->set("k", "w")) &&
                 is_forked(store->reopen()) && is_forked(group->barrier(1s)) &&
                 is_forked(group->members()) && is_forked(group->leave());
    store->get_async("k", 1s, [&](Result<std::string> result) { right &= is_forked(result); });
    StoreOptions store_options;
    store_options.io_thread = io_thread;
    right &= is_forked(Store::connect(server.addresses().front(), store_options));
    ServerOptions server_options;
    server_options.io_thread = io_thread;
    right &= is_forked(Server::start(server_options));
    call.cancel();
    store->cancel();
    store->close();
    group.reset();
    store.reset();
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(must(store->get("k")) == "v");
  must(store->set("later", "v"));
  CHECK(must(result_of(waiting)) == "v");
  must(group->barrier());
}

}  // namespace
}  // namespace muster::test
