#include <atomic>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>

#include "muster/codec_cereal.h"
#include "muster/codec_raw.h"
#include "spawn.h"

// Every call for Asio, from coroutines, with the server, all ranks and their groups on one thread.

namespace muster::test {
namespace {

awaitable<void> use_keys(Store& store) {
  CHECK(must(co_await async_set(store, "a", "1", {}, 20s, use_awaitable)));
  CHECK(must(co_await async_get(store, "a", 20s, use_awaitable)) == "1");
  CHECK(must(co_await async_add(store, "a", 41, 20s, use_awaitable)) == 42);
  CHECK(must(co_await async_append(store, "a", "!", 20s, use_awaitable)) == 3);
  const Compared compared =
      must(co_await async_compare_set(store, "a", std::string("1"), "2", {}, 20s, use_awaitable));
  CHECK_FALSE(compared.applied);
  CHECK(compared.current == "42!");
  CHECK(must(co_await async_compare_set(store, "b", std::nullopt, "2", {}, 20s, use_awaitable))
            .applied);
  must(co_await async_touch(store, "b", 1h, 20s, use_awaitable));
  CHECK(must(co_await async_exists(store, "b", 20s, use_awaitable)));
  CHECK(must(co_await async_take(store, "b", 20s, use_awaitable)) == "2");
  CHECK_FALSE(must(co_await async_remove(store, "b", 20s, use_awaitable)));
  CHECK(must(co_await async_queue_push(store, "q", "item", 20s, use_awaitable)) == 1);
  CHECK(must(co_await async_queue_length(store, "q", 20s, use_awaitable)) == 1);
  CHECK(must(co_await async_queue_pop(store, "q", 20s, use_awaitable)) == "item");

  // g++ 12 takes no braced lists in what is awaited.
  const std::vector<std::pair<std::string, std::string>> entries{{"c", "3"}, {"d", "4"}};
  const std::vector<std::string> both{"c", "d"};
  const std::vector<std::string> one{"d", "e"};
  must(co_await async_multi_set(store, entries, {}, 20s, use_awaitable));
  must(co_await async_wait(store, both, 20s, use_awaitable));
  const auto values = must(co_await async_multi_get(store, one, 20s, use_awaitable));
  CHECK(values == std::vector<std::optional<std::string>>{"4", std::nullopt});
  const auto are_there = must(co_await async_multi_exists(store, one, 20s, use_awaitable));
  CHECK(are_there == std::vector<bool>{true, false});
  CHECK(must(co_await async_list(store, "c", 0, 20s, use_awaitable)).keys.size() == 1);
  CHECK(must(co_await async_multi_remove(store, both, 20s, use_awaitable)) == 2);

  must(co_await async_reopen(store, 20s, use_awaitable));  // its session stands
  CHECK_FALSE(must(co_await async_status(store, 20s, use_awaitable)).empty());
  ProcessId nobody;
  nobody.bytes[0] = 1;
  CHECK(must_fail(co_await async_report_dead(store, nobody, "gone", 20s, use_awaitable)).code ==
        ErrorCode::permission_denied);
  CHECK(must_fail(co_await async_drop_namespace(store, "another", 20s, use_awaitable)).code ==
        ErrorCode::permission_denied);
}

awaitable<void> use_bytes(StatelessProcessGroup& group) {
  const int rank = group.rank();
  const int other = 1 - rank;
  const std::string own = std::to_string(rank);
  const std::vector<std::string> both{"0", "1"};
  constexpr auto codec = RawCodec::id;
  must(co_await async_send_bytes(group, Rank{other}, codec, own, Tag{7}, 20s, use_awaitable));
  const ReceivedBytes received =
      must(co_await async_recv_bytes(group, Rank{other}, codec, Tag{7}, 20s, use_awaitable));
  CHECK(received.bytes == std::to_string(other));
  CHECK(must(co_await async_broadcast_bytes(group, own, codec, Rank{1}, 20s, use_awaitable)) ==
        "1");
  CHECK(must(co_await async_all_gather_bytes(group, own, codec, 20s, use_awaitable)) == both);
  const auto gathered =
      must(co_await async_gather_bytes(group, own, codec, Rank{0}, 20s, use_awaitable));
  CHECK(gathered == (rank == 0 ? both : std::vector<std::string>()));
  CHECK(must(co_await async_scatter_bytes(group, rank == 0 ? both : gathered, codec, Rank{0}, 20s,
                                          use_awaitable)) == own);
}

awaitable<void> use_objects(StatelessProcessGroup& group) {
  const int rank = group.rank();
  const int other = 1 - rank;
  const std::vector<int> both{0, 1};
  must(co_await async_send_obj(group, Rank{other}, rank, Tag(), 20s, use_awaitable));
  must(co_await async_send_obj<RawCodec>(group, Rank{other}, "text", Tag{1}, 20s, use_awaitable));
  CHECK(must(co_await async_recv_obj<int>(group, Rank{other}, Tag(), 20s, use_awaitable)) == other);
  const auto numbered = must(co_await async_recv_numbered_obj<std::string, RawCodec>(
      group, Rank{other}, Tag{1}, 20s, use_awaitable));
  CHECK(numbered.object == "text");
  CHECK(numbered.sequence == 0);
  CHECK(must(co_await async_broadcast_obj(group, rank + 10, Rank{1}, 20s, use_awaitable)) == 11);
  CHECK(must(co_await async_all_gather_obj(group, rank, 20s, use_awaitable)) == both);
  const auto gathered = must(co_await async_gather_obj(group, rank, Rank{0}, 20s, use_awaitable));
  CHECK(gathered == (rank == 0 ? both : std::vector<int>()));
  CHECK(must(co_await async_scatter_obj(group, rank == 0 ? both : gathered, Rank{0}, 20s,
                                        use_awaitable)) == rank);
  CHECK(must(co_await async_all_reduce_obj(group, rank + 1, std::plus<int>(), 20s,
                                           use_awaitable)) == 3);
  const auto refuse = [](int, int) -> int { throw std::runtime_error("these cannot be added"); };
  const Error thrown =
      must_fail(co_await async_all_reduce_obj(group, rank, refuse, 20s, use_awaitable));
  CHECK(thrown.code == ErrorCode::codec_failure);
  CHECK(thrown.operation == "all_reduce_obj");
  CHECK(thrown.detail == "these cannot be added");
}

awaitable<void> be_rank(AsioHost& host, const Server& server, int rank) {
  Store store = co_await host.connect(server);
  auto group = must(co_await async_create(store, "both", rank, 2, patience(), use_awaitable));
  co_await use_bytes(group);
  co_await use_objects(group);
  CHECK(must(co_await async_members(group, 20s, use_awaitable)).size() == 2);
  CHECK(must(co_await async_expire_data(group, Duration(0), 20s, use_awaitable)) == 0);
  CHECK(must(co_await async_recover(group, 20s, use_awaitable)).round == 0);
  must(co_await async_interrupt(group, "a test says so", 20s, use_awaitable));
  auto next = must(co_await async_regroup(group, {}, 20s, use_awaitable));
  CHECK(must(co_await async_barrier(next, 20s, use_awaitable)).unconfirmed.empty());
  must(co_await async_leave(next, 20s, use_awaitable));
}

TEST_CASE("every call of a store is awaited") {
  AsioHost host;
  const Server server = host.start_server();
  host.run([](AsioHost& in, const Server& at) -> awaitable<void> {
    Store store = co_await in.connect(at);
    co_await use_keys(store);
  }(host, server));
}

TEST_CASE("every call of a group is awaited, by both ranks at once") {
  AsioHost host;
  const Server server = host.start_server();
  host.run([](AsioHost& in, const Server& at) -> awaitable<void> {
    bool has_ended = false;
    asio::steady_timer both(in.context, asio::steady_timer::time_point::max());
    asio::co_spawn(in.context, be_rank(in, at, 1), [&](std::exception_ptr thrown) {
      has_ended = true;
      both.cancel();
      rethrow(std::move(thrown));
    });
    co_await be_rank(in, at, 0);
    asio::error_code ignored;
    while (!has_ended) co_await both.async_wait(asio::redirect_error(use_awaitable, ignored));
  }(host, server));
}

/// Refuses everything.
struct BrokenCodec {
  static constexpr std::uint32_t id = RawCodec::id;

  template <class T>
  static Result<std::string> encode(const T&) {
    return failure("it cannot be encoded");
  }
  template <class T>
  static Result<T> decode(std::string_view) {
    return failure("it cannot be decoded");
  }

  static Error failure(const char* why) {
    Error error;
    error.code = ErrorCode::codec_failure;
    error.detail = why;
    return error;
  }
};

/// As a codec of a program that throws.
struct ThrowingCodec : RawCodec {
  template <class T>
  static Result<T> decode(std::string_view) {
    throw std::runtime_error("no such type");
  }
};

TEST_CASE("an object that the codec refuses does not count, and the error says whose it was") {
  AsioHost host;
  const Server server = host.start_server();
  host.run([](AsioHost& in, const Server& at) -> awaitable<void> {
    Store store = co_await in.connect(at);
    auto group = must(co_await async_create(store, "alone", 0, 1, patience(), use_awaitable));
    const Error sent = must_fail(
        co_await async_send_obj<BrokenCodec>(group, Rank{0}, 1, Tag(), 20s, use_awaitable));
    CHECK(sent.code == ErrorCode::codec_failure);
    CHECK(sent.operation == "send_obj");
    CHECK(sent.group == "alone");
    CHECK(sent.epoch == group.epoch());
    CHECK(must_fail(co_await async_all_gather_obj<BrokenCodec>(group, 1, 20s, use_awaitable))
              .operation == "all_gather_obj");
    CHECK(group.counters().rounds == 0);
    must(co_await async_send_obj<RawCodec>(group, Rank{0}, "bytes", Tag(), 20s, use_awaitable));
    const Error received = must_fail(
        co_await async_recv_obj<int, BrokenCodec>(group, Rank{0}, Tag(), 20s, use_awaitable));
    CHECK(received.code == ErrorCode::codec_failure);
    CHECK(received.operation == "recv_obj");
    must(co_await async_send_obj<RawCodec>(group, Rank{0}, "bytes", Tag(), 20s, use_awaitable));
    const Error thrown = must_fail(
        co_await async_recv_obj<int, ThrowingCodec>(group, Rank{0}, Tag(), 20s, use_awaitable));
    CHECK(thrown.code == ErrorCode::codec_failure);
    CHECK(thrown.operation == "recv_obj");
    CHECK(thrown.detail == "no such type");
  }(host, server));
}

TEST_CASE("the end of a communicator is awaited, each loss before it too") {
  asio::io_context context;
  CommunicatorOptions options;
  CommunicatorEnd end(options);
  const auto tell = [&](ErrorCode code) {
    Error error;
    error.code = code;
    options.on_end(error);
  };
  std::vector<ErrorCode> heard;
  const auto hear = [&] {
    end.async_wait(asio::bind_executor(
        context, [&](const Result<void>& result) { heard.push_back(must_fail(result).code); }));
  };
  tell(ErrorCode::rank_left);
  hear();
  CHECK(heard.empty());
  context.run();
  hear();
  hear();  // one at a time
  context.restart();
  CHECK(context.run_one() == 1);
  tell(ErrorCode::rank_lost);
  context.run();
  CHECK(heard ==
        std::vector<ErrorCode>{ErrorCode::rank_left, ErrorCode::busy, ErrorCode::rank_lost});
}

TEST_CASE("an end that comes as its wait is cancelled goes to the wait, or to the next one") {
  for (int attempt = 0; attempt < 500; ++attempt) {
    asio::io_context context;
    asio::cancellation_signal signal;
    CommunicatorOptions options;
    CommunicatorEnd end(options);
    std::vector<ErrorCode> heard;
    const auto hear = [&](const Result<void>& result) { heard.push_back(must_fail(result).code); };
    end.async_wait(asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(context, hear)));
    std::atomic<int> ready_count{0};
    const auto meet = [&] {
      ++ready_count;
      while (ready_count < 2) {
      }
    };
    std::thread teller([&] {
      Error error;
      error.code = ErrorCode::rank_lost;
      meet();
      options.on_end(error);
    });
    meet();
    signal.emit(asio::cancellation_type::terminal);
    teller.join();
    context.run();
    if (heard.front() == ErrorCode::rank_lost) continue;
    REQUIRE(heard == std::vector<ErrorCode>{ErrorCode::cancelled});
    end.async_wait(asio::bind_executor(context, hear));
    context.restart();
    context.poll();
    REQUIRE(heard.back() == ErrorCode::rank_lost);
  }
}

}  // namespace
}  // namespace muster::test
