#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <asio/bind_allocator.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/use_future.hpp>

#include "muster/inspect.h"
#include "spawn.h"

// What a token chooses: where and when the result comes, with which memory, and what ends the call.

namespace muster::test {
namespace {

TEST_CASE("a future has the result, of a store with an I/O thread of its own") {
  const Server server = start_server();
  Store store = connect(server);
  std::future<Result<std::string>> got = async_get(store, "key", 20s, asio::use_future);
  CHECK(must(async_set(store, "key", "value", {}, 20s, asio::use_future).get()));
  CHECK(must(got.get()) == "value");
}

TEST_CASE("a deferred call begins when it is launched, with arguments of its own") {
  const Server server = start_server();
  Store store = connect(server);
  std::string key = "key";
  auto set = async_set(store, key, std::string("value"), {}, 20s, deferred);
  key = "another";
  CHECK_FALSE(must(store.exists("key")));
  std::promise<bool> is_set;
  std::move(set)([&](auto result) { is_set.set_value(must(std::move(result))); });
  CHECK(is_set.get_future().get());
  CHECK(must(store.get("key")) == "value");
}

TEST_CASE("the context runs until the call has ended, and its thread runs the handler") {
  const Server server = start_server();
  Store store = connect(server);
  asio::io_context context;
  std::thread::id ran_on;
  async_get(store, "key", 20s, asio::bind_executor(context, [&](auto value) {
              ran_on = std::this_thread::get_id();
              CHECK(must(std::move(value)) == "value");
            }));
  CHECK(context.poll() == 0);
  CHECK_FALSE(context.stopped());  // it has work
  must(store.set("key", "value"));
  CHECK(context.run() == 1);
  CHECK(ran_on == std::this_thread::get_id());
}

TEST_CASE("a handler without an executor runs where the store's options say") {
  const Server server = start_server();
  std::promise<std::function<void()>> queued;
  StoreOptions options;
  options.executor = [&](std::function<void()> work) { queued.set_value(std::move(work)); };
  Store store = connect(server, options);
  bool has_run = false;
  async_exists(store, "key", 20s, [&](const auto&) { has_run = true; });
  const auto work = queued.get_future().get();
  CHECK_FALSE(has_run);
  work();
  CHECK(has_run);
}

TEST_CASE("what never began completes by the executor, too") {
  const Server server = start_server();
  Store gone = connect(server);
  const Store store = std::move(gone);
  asio::io_context context;
  std::optional<ErrorCode> code;
  async_get(gone, "key", 20s, asio::bind_executor(context, [&](const auto& result) {
              code = must_fail(result).code;
            }));
  CHECK_FALSE(code);
  context.run();
  CHECK(code == ErrorCode::closed);
}

TEST_CASE("what a handler throws comes out of the context") {
  AsioHost host;
  const Server server = host.start_server();
  CHECK_THROWS_AS(host.run([](AsioHost& in, const Server& at) -> awaitable<void> {
    Store store = co_await in.connect(at);
    throw std::runtime_error("mine");
  }(host, server)),
                  std::runtime_error);
}

TEST_CASE("a cancellation slot ends its call alone") {
  const Server server = start_server();
  Store store = connect(server);
  asio::io_context context;
  for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                          asio::cancellation_type::total}) {
    asio::cancellation_signal signal;
    std::optional<ErrorCode> code;
    std::optional<std::string> other;
    async_get(store, "missing", 20s,
              asio::bind_cancellation_slot(signal.slot(),
                                           asio::bind_executor(context, [&](const auto& result) {
                                             code = must_fail(result).code;
                                           })));
    async_take(store, "key", 20s,
               asio::bind_executor(context, [&](auto value) { other = must(std::move(value)); }));
    signal.emit(type);
    context.restart();
    context.run_one();
    CHECK(code == ErrorCode::cancelled);
    CHECK_FALSE(signal.slot().has_handler());
    must(store.set("key", "value"));
    context.run();
    CHECK(other == "value");
  }
}

TEST_CASE("a coroutine takes what comes first, and the other call is cancelled") {
  using namespace asio::experimental::awaitable_operators;
  AsioHost host;
  const Server server = host.start_server();
  host.run([](AsioHost& in, const Server& at) -> awaitable<void> {
    Store store = co_await in.connect(at);
    asio::steady_timer timer(in.context, 20ms);
    const auto first =
        co_await (async_take(store, "key", 20s, use_awaitable) || timer.async_wait(use_awaitable));
    CHECK(first.index() == 1);
    must(co_await async_set(store, "key", "value", {}, 20s, use_awaitable));
    CHECK(must(co_await async_get(store, "key", Duration(0), use_awaitable)) == "value");
  }(host, server));
}

TEST_CASE("what has come for a handler that is cancelled before it runs is given back") {
  const Server server = start_server();
  Store store = connect(server);
  Store other = connect(server);
  asio::io_context context;
  for (int round = 0; round < 50; ++round) {
    must(other.queue_push("q", "item"));
    asio::cancellation_signal signal;
    std::optional<Error> error;
    async_queue_pop(store, "q", 20s,
                    asio::bind_cancellation_slot(
                        signal.slot(), asio::bind_executor(context, [&](const auto& result) {
                          error = must_fail(result);
                        })));
    while (must(other.queue_length("q")) != 0) continue;
    must(store.exists("q"));  // its reply comes behind the item
    signal.emit(asio::cancellation_type::terminal);
    context.restart();
    context.run();
    REQUIRE(error.has_value());
    CHECK(error->code == ErrorCode::cancelled);
    CHECK(error->happened == Happened::no);
    CHECK(must(other.queue_pop("q", Duration(0))) == "item");
  }
}

/// Counts what it gives out.
template <class T>
struct CountingAllocator {
  using value_type = T;

  explicit CountingAllocator(int& counter) : count(&counter) {}
  template <class U>
  CountingAllocator(const CountingAllocator<U>& other) : count(other.count) {}

  T* allocate(std::size_t size) {
    ++*count;
    return std::allocator<T>().allocate(size);
  }
  void deallocate(T* memory, std::size_t size) { std::allocator<T>().deallocate(memory, size); }

  friend bool operator==(CountingAllocator a, CountingAllocator b) { return a.count == b.count; }
  friend bool operator!=(CountingAllocator a, CountingAllocator b) { return !(a == b); }

  int* count;
};

TEST_CASE("the handler's allocator has the memory of the post") {
  const Server server = start_server();
  Store store = connect(server);
  asio::io_context context;
  int count = 0;
  async_exists(store, "key", 20s,
               asio::bind_allocator(CountingAllocator<char>(count),
                                    asio::bind_executor(context, [](const auto&) {})));
  context.run();
  CHECK(count > 0);
}

/// Waits for what does not come, and owns its store.
awaitable<void> wait_in_vain(AsioHost& host, const Server& server, std::shared_ptr<int> witness,
                             bool& waits) {
  Store store = co_await host.connect(server);
  auto got = async_get(store, "missing", 20s, use_awaitable);
  waits = true;
  const auto value = co_await std::move(got);
  FAIL(*witness, value.has_value());
}

TEST_CASE("a context that is destroyed takes the coroutines that wait along, and their stores") {
  const auto witness = std::make_shared<int>(0);
  const Server server = start_server();
  Store other = connect(server);
  {
    AsioHost host;
    bool waits = false;
    asio::co_spawn(host.context, wait_in_vain(host, server, witness, waits), rethrow);
    while (!waits) host.context.run_one();
    CHECK(witness.use_count() == 2);
    CHECK(must(inspect_sessions(other)).size() == 2);
  }
  CHECK(witness.use_count() == 1);
  await([&] { return must(inspect_sessions(other)).size() == 1; });
}

awaitable<void> count_to(Store& store, int end) {
  for (int count = 0; count < end; ++count) {
    must(co_await async_add(store, "number", 1, 20s, use_awaitable));
  }
}

TEST_CASE("several threads run the context, and Muster is served on a strand of it") {
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  AsioLoop loop = must(AsioLoop::create(strand));
  ServerOptions server_options;
  server_options.io_thread = loop.io_thread();
  StoreOptions options;
  options.io_thread = loop.io_thread();
  std::vector<std::thread> threads;
  for (int count = 0; count < 3; ++count) threads.emplace_back([&] { context.run(); });
  {
    const Server server = start_server(server_options);
    Store store =
        must(async_connect(server.addresses().front(), options, 20s, asio::use_future).get());
    std::vector<std::future<Result<std::int64_t>>> sums;
    for (int count = 0; count < 100; ++count) {
      sums.push_back(async_add(store, "number", 1, 20s, asio::use_future));
    }
    asio::co_spawn(asio::make_strand(context), count_to(store, 100), asio::use_future).get();
    for (auto& sum : sums) must(sum.get());
    CHECK(must(async_get(store, "number", 20s, asio::use_future).get()) == "200");
  }
  asio::post(strand, [&] { loop.stop(); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace muster::test
