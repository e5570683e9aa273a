#include <functional>
#include <future>
#include <optional>

#include "muster/codec_cereal.h"
#include "muster/codec_json.h"
#include "muster/future.h"
#include "support/ranks.h"

// What calls on objects say of streams, and what they leave for the next call.

namespace muster::test {
namespace {

using Group = StatelessProcessGroup;

/// A group of one: this rank sends to itself.
struct Alone {
  Server server = start_server();
  Store store = connect(server);
  Group group = join(store, "g", 0, 1);
};

StreamPosition at(std::uint64_t tag, std::uint64_t sequence) { return {0, 0, tag, sequence}; }

TEST_CASE("a receive without an object says which tags have some") {
  Alone alone;
  Group& group = alone.group;
  must(group.send_obj(Rank{0}, 1));
  must(group.send_obj(Rank{0}, 2, Tag{7}));
  must(group.send_obj(Rank{0}, 3, Tag{7}));
  const Error late = must_fail(group.recv_obj<int>(Rank{0}, Tag{30}, 50ms));
  CHECK(late.code == ErrorCode::timed_out);
  CHECK(late.detail.find("tag 0 has 1 object") != std::string::npos);
  CHECK(late.detail.find("tag 7 has 2 objects") != std::string::npos);
  const Error absent = must_fail(group.recv_obj<int>(Rank{0}, Tag{30}, 0s));
  CHECK(absent.code == ErrorCode::not_found);
  CHECK(absent.detail.find("tag 0 has 1 object") != std::string::npos);
  CHECK(must(group.recv_obj<int>(Rank{0})) == 1);
  CHECK(must(group.recv_obj<int>(Rank{0}, Tag{7})) == 2);
  // What was received is not told of, though it is not acknowledged yet.
  const Error later = must_fail(group.recv_obj<int>(Rank{0}, Tag{30}, 0s));
  CHECK(later.detail.find("tag 0") == std::string::npos);
  CHECK(later.detail.find("tag 7 has 1 object") != std::string::npos);
}

TEST_CASE("every error of a stream says where in the stream the call was") {
  Alone alone;
  Group& group = alone.group;
  must(group.send_obj(Rank{0}, 1, Tag{7}));
  must(group.recv_obj<int>(Rank{0}, Tag{7}));
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{7}, 0s)).stream == at(7, 1));
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{7}, 50ms)).stream == at(7, 1));
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{7}, -5s)).stream == at(7, 1));
  const std::string large(alone.store.limits().value_bytes_max, 'x');
  CHECK(must_fail(group.send_obj(Rank{0}, large, Tag{7})).stream == at(7, 1));
  CHECK(must_fail(group.send_obj<JsonCodec>(Rank{0}, "\xff", Tag{7})).stream == at(7, 1));
  // Of a rank that is not there, there is no stream.
  CHECK_FALSE(must_fail(group.recv_obj<int>(Rank{1})).stream.has_value());
  CHECK_FALSE(must_fail(group.barrier(-5s)).stream.has_value());

  Call waiting = group.recv_bytes_async(Rank{0}, codec_id::raw, Tag{8}, 20s, [](const auto&) {});
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{8})).code == ErrorCode::busy);
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{8})).stream == at(8, 0));
  waiting.cancel();
  must(group.leave());
  CHECK(must_fail(group.recv_obj<int>(Rank{0}, Tag{7})).stream == at(7, 1));
  CHECK(must_fail(group.send_obj(Rank{0}, 1, Tag{7})).stream == at(7, 1));
}

TEST_CASE("an object that cannot be decoded is not received") {
  Alone alone;
  Group& group = alone.group;
  must(group.send_obj(Rank{0}, "text", Tag{7}));
  must(group.send_obj(Rank{0}, "next", Tag{7}));
  for (int i = 0; i < 3; ++i) {
    const Error error = must_fail(group.recv_obj<std::vector<std::string>>(Rank{0}, Tag{7}));
    CHECK(error.operation == "recv_obj");
    CHECK(error.stream == at(7, 0));
    must(alone.store.set("another", "request"));  // would acknowledge what was received
  }
  CHECK(group.counters().objects_received == 0);
  const auto received = must(group.recv_numbered_obj<std::string>(Rank{0}, Tag{7}));
  CHECK(received.object == "text");
  CHECK(received.sequence == 0);
  CHECK(must(group.recv_obj<std::string>(Rank{0}, Tag{7})) == "next");
  CHECK(group.counters().objects_received == 2);
  must(group.barrier());
  CHECK(held_count(alone.store, "objects") == 0);
}

TEST_CASE("an object of another type names its sender, and waits for its own type") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    if (rank == 1) must(group.send_obj(Rank{0}, 0.5, Tag{7}));
    if (rank == 0) {
      const Error error = must_fail(group.recv_obj<std::int64_t>(Rank{1}, Tag{7}));
      CHECK(error.code == ErrorCode::codec_mismatch);
      CHECK(error.expected != error.actual);
      CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
      CHECK(error.stream == StreamPosition{1, 0, 7, 0});
      CHECK(must(group.recv_obj<double>(Rank{1}, Tag{7})) == 0.5);
    }
    // Each receiver of a collective checks for itself.
    const auto all = rank == 0 ? group.all_gather_obj(1.0) : group.all_gather_obj(0.5);
    CHECK(must(all) == std::vector<double>{1.0, 0.5});
    if (rank == 0) {
      CHECK(must_fail(group.all_gather_obj(1)).rank_ranges == std::vector<RankRange>{{1, 1}});
      CHECK(must_fail(group.broadcast_obj<bool>(Rank{1})).rank_ranges ==
            std::vector<RankRange>{{1, 1}});
    } else {
      CHECK(must_fail(group.all_gather_obj(0.5)).rank_ranges == std::vector<RankRange>{{0, 0}});
      CHECK(must(group.broadcast_obj('c', Rank{1})) == 'c');
    }
    must(group.barrier());
  });
}

TEST_CASE("a delivery that is not accepted comes again, and nobody else gets it meanwhile") {
  Alone alone;
  Group& group = alone.group;
  must(group.send_obj(Rank{0}, "text"));
  must(group.send_obj(Rank{0}, "next"));
  {
    const Delivery delivery = must(group.recv_delivery(Rank{0}, CerealCodec::id));
    CHECK(delivery.position() == at(0, 0));
    CHECK(must(CerealCodec::decode<std::string>(delivery.bytes())) == "text");
    CHECK(must_fail(group.recv_obj<std::string>(Rank{0})).code == ErrorCode::busy);
  }
  std::promise<Result<Delivery>> come;
  group.recv_delivery_async(Rank{0}, CerealCodec::id, Tag(), 20s, [&](Result<Delivery> delivery) {
    come.set_value(std::move(delivery));
  });
  Delivery delivery = must(come.get_future().get());
  CHECK(delivery.position() == at(0, 0));
  CHECK(delivery.accept().sequence == 0);
  CHECK(delivery.accept().bytes.empty());
  CHECK(delivery.bytes().empty());
  CHECK(must(group.recv_obj<std::string>(Rank{0})) == "next");
}

TEST_CASE("a delivery may outlive its handle and its store") {
  std::optional<Delivery> delivery;
  std::optional<Delivery> accepted;
  {
    Alone alone;
    must(alone.group.send_obj(Rank{0}, "text"));
    must(alone.group.send_obj(Rank{0}, "tagged", Tag{7}));
    delivery = must(alone.group.recv_delivery(Rank{0}, CerealCodec::id));
    accepted = must(alone.group.recv_delivery(Rank{0}, CerealCodec::id, Tag{7}));
  }
  CHECK(must(CerealCodec::decode<std::string>(accepted->accept().bytes)) == "tagged");
  delivery.reset();
}

TEST_CASE("receivers of a collective need no object of their own") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    if (rank == 1) {
      CHECK(must_fail(group.broadcast_obj<std::string>(Rank{1})).code ==
            ErrorCode::invalid_argument);
      CHECK(must_fail(group.scatter_obj<int>(Rank{1}, 5s)).code == ErrorCode::invalid_argument);
      CHECK(must(group.broadcast_obj("text", Rank{1})) == "text");
      CHECK(must(group.scatter_obj(std::vector<int>{5, 6, 7}, Rank{1})) == 6);
    } else {
      CHECK(must(group.broadcast_obj<std::string>(Rank{1})) == "text");
      CHECK(must(group.scatter_obj<int>(Rank{1}, 5s)) == (rank == 0 ? 5 : 7));
    }
    must(group.barrier());
  });
}

/// Of a call that `begin` begins with a handler.
template <class T, class Begin>
Result<T> ended(Begin begin) {
  return future_of<T>(std::move(begin)).get();
}

TEST_CASE("every call on objects has a callback form, and any callback form a future") {
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    const Rank other(1 - rank);
    must(ended<void>([&](auto handler) {
      return group.send_obj_async(other, rank, Tag{7}, 20s, std::move(handler));
    }));
    must(ended<void>([&](auto handler) {
      return group.send_obj_async(other, "text", Tag{7}, 20s, std::move(handler));
    }));
    CHECK(must(ended<int>([&](auto handler) {
            return group.recv_obj_async<int>(other, Tag{7}, 20s, std::move(handler));
          })) == other.number);
    const auto numbered = must(ended<Received<std::string>>([&](auto handler) {
      return group.recv_numbered_obj_async<std::string>(other, Tag{7}, 20s, std::move(handler));
    }));
    CHECK(numbered.object == "text");
    CHECK(numbered.sequence == 1);
    const auto told = must(ended<std::string>([&](auto handler) {
      return rank == 0 ? group.broadcast_obj_async("told", Rank{0}, 20s, std::move(handler))
                       : group.broadcast_obj_async<std::string>(Rank{0}, 20s, std::move(handler));
    }));
    CHECK(told == "told");
    CHECK(must(ended<std::vector<int>>([&](auto handler) {
            return group.all_gather_obj_async(rank, 20s, std::move(handler));
          })) == std::vector<int>{0, 1});
    const auto gathered = must(ended<std::vector<int>>([&](auto handler) {
      return group.gather_obj_async(rank, Rank{0}, 20s, std::move(handler));
    }));
    CHECK(gathered.size() == (rank == 0 ? 2 : 0));
    CHECK(must(ended<int>([&](auto handler) {
            return rank == 0 ? group.scatter_obj_async(gathered, Rank{0}, 20s, std::move(handler))
                             : group.scatter_obj_async<int>(Rank{0}, 20s, std::move(handler));
          })) == rank);
    CHECK(must(ended<int>([&](auto handler) {
            return group.all_reduce_obj_async(rank + 1, std::plus<>(), 20s, std::move(handler));
          })) == 3);
    CHECK(must(ended<bool>([&](auto handler) {
      return store.set_async("key" + std::to_string(rank), "v", {}, 20s, std::move(handler));
    })));
    must(group.barrier());
  });
}

TEST_CASE("what cannot be encoded, decoded or begun ends a callback form with its error") {
  Alone alone;
  Group& group = alone.group;
  const auto sent = ended<void>([&](auto handler) {
    return group.send_obj_async<JsonCodec>(Rank{0}, "\xff", Tag{7}, 20s, std::move(handler));
  });
  CHECK(must_fail(sent).code == ErrorCode::codec_failure);
  CHECK(must_fail(sent).operation == "send_obj");
  CHECK(must_fail(sent).stream == at(7, 0));
  CHECK(must_fail(ended<std::vector<std::string>>([&](auto handler) {
          return group.all_gather_obj_async<JsonCodec>("\xff", 20s, std::move(handler));
        })).code == ErrorCode::codec_failure);
  CHECK(must_fail(ended<int>([&](auto handler) {
          return group.broadcast_obj_async<int>(Rank{0}, 20s, std::move(handler));
        })).code == ErrorCode::invalid_argument);
  CHECK(group.counters().rounds == 0);

  must(group.send_obj(Rank{0}, "text", Tag{7}));
  const auto wrong = ended<std::vector<std::string>>([&](auto handler) {
    return group.recv_obj_async<std::vector<std::string>>(Rank{0}, Tag{7}, 20s, std::move(handler));
  });
  CHECK(must_fail(wrong).operation == "recv_obj");
  CHECK(must_fail(wrong).stream == at(7, 0));
  CHECK(must(group.recv_obj<std::string>(Rank{0}, Tag{7})) == "text");
}

}  // namespace
}  // namespace muster::test
