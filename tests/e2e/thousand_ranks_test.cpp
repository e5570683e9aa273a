// 1,024 ranks in one process: a store each, few threads, one server.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "support/machine.h"
#include "support/ranks.h"
#include "support/scale.h"

namespace muster::test {
namespace {

/// Fewer where the tests are scaled down far, as under the sanitizers: with more, the tests beside
/// this one would be late.
const int wide_world_size = scaled(1024) < 128 ? 64 : 1024;
constexpr Duration ample = std::chrono::seconds(120);

/// Runs an asynchronous call on all ranks and waits for all their results.
template <class T>
std::vector<T> on_all_ranks(const std::function<void(int rank, Handler<T> handler)>& call) {
  std::mutex mutex;
  std::condition_variable done;
  std::vector<std::optional<Result<T>>> results(static_cast<std::size_t>(wide_world_size));
  int left = wide_world_size;
  for (int rank = 0; rank < wide_world_size; ++rank) {
    call(rank, [&, rank](Result<T> result) {
      const std::lock_guard lock(mutex);
      results[static_cast<std::size_t>(rank)] = std::move(result);
      if (--left == 0) done.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  REQUIRE(done.wait_for(lock, 150s, [&] { return left == 0; }));
  std::vector<T> values;
  for (auto& result : results) values.push_back(must(*std::move(result)));
  return values;
}

}  // namespace

TEST_CASE("1,024 ranks join, pass 100 barriers, gather 1 KiB each, and leave") {
  // Both ends of every connection are in this process.
  REQUIRE(allow_descriptors() > static_cast<std::size_t>(2 * wide_world_size + 64));
  ServerOptions server_options;
  server_options.connections_max = 2048;
  server_options.session_timeout = ample;  // one thread serves all ranks, maybe with a sanitizer
  auto server = start_server(server_options);
  StoreOptions store_options;
  store_options.timeout = ample;
  store_options.io_thread = IoThread::create("ranks");
  std::vector<Store> stores;
  for (int rank = 0; rank < wide_world_size; ++rank)
    stores.push_back(connect(server, store_options));

  auto groups = on_all_ranks<StatelessProcessGroup>([&](int rank, auto handler) {
    StatelessProcessGroup::create_async(stores[static_cast<std::size_t>(rank)], "wide", rank,
                                        wide_world_size, patience(ample), std::move(handler));
  });
  const auto group = [&](int rank) -> StatelessProcessGroup& {
    return groups[static_cast<std::size_t>(rank)];
  };
  for (int i = 0; i < scaled(100); ++i) {
    on_all_ranks<BarrierResult>(
        [&](int rank, auto handler) { group(rank).barrier_async(ample, std::move(handler)); });
  }
  const auto part_of = [](int rank) {
    return std::string(1024, static_cast<char>('a' + rank % 26)) + std::to_string(rank);
  };
  const auto right = on_all_ranks<bool>([&](int rank, auto handler) {
    const auto check = [&part_of, handler](Result<std::vector<std::string>> all) {
      if (!all) return handler(std::move(all).error());
      bool all_right = static_cast<int>(all->size()) == wide_world_size;
      for (int i = 0; all_right && i < wide_world_size; ++i) {
        all_right = (*all)[static_cast<std::size_t>(i)] == part_of(i);
      }
      handler(all_right);
    };
    group(rank).all_gather_bytes_async(part_of(rank), codec_id::raw, ample, check);
  });
  CHECK(std::count(right.begin(), right.end(), true) == wide_world_size);
  for (int rank = 0; rank < wide_world_size; ++rank) must(group(rank).leave(ample));
  await([&] { return held_count(stores[0], "groups") == 0; });
  CHECK(held_count(stores[0], "rounds") == 0);
  CHECK(held_count(stores[0], "objects") == 0);
}

}  // namespace muster::test
