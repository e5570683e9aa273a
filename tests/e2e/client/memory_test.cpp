// What a call asks of the allocator, on all threads of the client. Handing over a value that is too
// long for its string needs a block, a list of keys or of answers one, and the callback form one.

#include <array>
#include <functional>
#include <future>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "e2e/server/musterd.h"
#include "muster/process_group.h"
#include "support/allocations.h"
#include "support/ranks.h"
#include "support/server.h"

namespace muster::test {
namespace {

using Call = std::function<void()>;

constexpr int warm_calls = 300;
constexpr int calls = 1000;

/// For what does not come with a call, such as heartbeats.
constexpr std::uint64_t others_max = 20;

/// In steady state, of `calls` calls.
std::uint64_t allocations_of(const Call& call) {
  for (int count = 0; count < warm_calls; ++count) call();
  const std::uint64_t before = allocations_of_process();
  for (int count = 0; count < calls; ++count) call();
  return allocations_of_process() - before;
}

const std::string key = "a key of more than fifteen bytes";
const std::string value(64, 'v');

struct Setting {
  explicit Setting(HandlerPlace handlers = HandlerPlace::handler_thread)
      : store(must(Store::connect(server.address(), options_with(handlers)))) {
    must(store.set(key, value));
  }
  ~Setting() { check_healthy(store); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

  static StoreOptions options_with(HandlerPlace handlers) {
    StoreOptions options;
    options.handlers = handlers;
    return options;
  }

  Musterd server{{}};
  Store store;
};

TEST_CASE("a blocking call needs no memory but for the value it hands over") {
  Setting here;
  Store& store = here.store;
  CHECK(allocations_of([&] { must(store.set(key, value)); }) <= others_max);
  CHECK(allocations_of([&] { must(store.add("counter", 1)); }) <= others_max);
  CHECK(allocations_of([&] { must(store.touch(key, std::nullopt)); }) <= others_max);
  CHECK(allocations_of([&] { must(store.get(key)); }) <= calls + others_max);
  const std::array<std::string_view, 1> keys = {key};
  CHECK(allocations_of([&] { must(store.exists(key)); }) <= 2 * calls + others_max);
  CHECK(allocations_of([&] { must(store.wait(keys)); }) <= calls + others_max);
}

TEST_CASE("a call of a group needs none either") {
  Setting here;
  auto group = must(StatelessProcessGroup::create(here.store, "a group of more than 15", 0, 1));
  CHECK(allocations_of([&] { must(group.barrier()); }) <= others_max);
}

TEST_CASE("a call in its callback form needs one block, wherever its handler runs") {
  for (const auto place : {HandlerPlace::handler_thread, HandlerPlace::io_thread}) {
    Setting here(place);
    std::promise<void>* waiting = nullptr;
    const std::uint64_t for_promises = allocations_of([] { std::promise<void>().get_future(); });
    const Call set = [&] {
      std::promise<void> done;
      waiting = &done;
      here.store.set_async(key, value, {}, default_timeout, [&waiting](Result<bool> result) {
        must(std::move(result));
        waiting->set_value();
      });
      done.get_future().wait();
    };
    CHECK(allocations_of(set) <= calls + for_promises + others_max);
    const Call get = [&] {
      std::promise<void> done;
      waiting = &done;
      here.store.get_async(key, default_timeout, [&waiting](Result<std::string> result) {
        must(std::move(result));
        waiting->set_value();
      });
      done.get_future().wait();
    };
    CHECK(allocations_of(get) <= 2 * calls + for_promises + others_max);  // the value is one
  }
}

}  // namespace
}  // namespace muster::test
