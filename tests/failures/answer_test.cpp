#include <cstdlib>
#include <functional>
#include <future>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "support/ranks.h"

// The server has answered, and this thread has no memory to take the answer: what then follows is
// never taken for something else.

namespace {

constexpr std::size_t refused_bytes_min = 1 << 20;
thread_local bool is_refused = false;

/// While it lives this thread gets no large piece of memory.
class Refusal {
 public:
  Refusal() { is_refused = true; }
  ~Refusal() { is_refused = false; }
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;
};

}  // namespace

void* operator new(std::size_t bytes) {
  if (is_refused && bytes >= refused_bytes_min) throw std::bad_alloc();
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace muster::test {
namespace {

constexpr std::uint32_t codec = 4711;

TEST_CASE("a round whose values cannot be taken is not taken for one that was not called") {
  auto server = start_disturbed_server();
  const std::string large(4U << 20, 'v');
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 1) {
      CHECK(must(group.all_gather_bytes(large, codec))[0] == "of rank 0");
      // Rank 0 is gone with its session, or is told that it is: no second round comes about.
      CHECK(must_fail(group.all_gather_bytes("second", codec)).code == ErrorCode::rank_lost);
      return;
    }
    {
      const Refusal refusal;
      const Error error = must_fail(group.all_gather_bytes("of rank 0", codec));
      CHECK(error.code == ErrorCode::outcome_unknown);
      CHECK(error.operation == "all_gather_obj");
    }
    // What is called before the I/O thread has ended the session ends with it.
    await([&] {
      const ErrorCode later = must_fail(group.all_gather_bytes("of rank 0", codec)).code;
      CHECK((later == ErrorCode::outcome_unknown || later == ErrorCode::resource_exhausted));
      return later == ErrorCode::resource_exhausted;
    });
    must(store.reopen());
    CHECK(must(store.add("n", 1)) == 1);
  });
}

TEST_CASE("the same in the callback form") {
  auto server = start_disturbed_server();
  const std::string large(4U << 20, 'v');
  run_ranks(2, [&](int rank) {
    StoreOptions options;
    // The handler's thread decodes: all of it has to be refused.
    options.executor = [](std::function<void()> work) {
      std::thread([work = std::move(work)] {
        const Refusal refusal;
        work();
      }).detach();
    };
    auto store = must(Store::connect(server.addresses().front(), options));
    auto group = join(store, "g", rank, 2);
    if (rank == 1) {
      CHECK(must(group.all_gather_bytes(large, codec))[0] == "of rank 0");
      CHECK(must_fail(group.barrier()).code == ErrorCode::rank_lost);
      return;
    }
    std::promise<ErrorCode> ended;
    group.all_gather_bytes_async("of rank 0", codec, 20s, [&](const auto& result) {
      ended.set_value(result ? ErrorCode::internal : result.error().code);
    });
    CHECK(ended.get_future().get() == ErrorCode::outcome_unknown);
    await([&] { return must_fail(group.barrier()).code == ErrorCode::resource_exhausted; });
  });
}

TEST_CASE("a read whose answer cannot be taken is asked again") {
  auto server = start_server();
  auto store = connect(server);
  const std::string large(4U << 20, 'v');
  must(store.set("a", large));
  must(store.set("b", "small"));
  const std::vector<std::string_view> keys{"a", "b"};
  {
    const Refusal refusal;
    CHECK(must_fail(store.multi_get(keys)).code == ErrorCode::outcome_unknown);
  }
  CHECK(must(store.multi_get(keys))[1] == "small");
}

}  // namespace
}  // namespace muster::test
