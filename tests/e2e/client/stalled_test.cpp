// An I/O thread that does not get to run, in the client and in the server.

#include <future>

#include "muster/codec_cereal.h"
#include "support/ranks.h"

namespace muster::test {
namespace {

/// Keeps an I/O thread from running, by an inline handler that breaks its promise never to block.
class Stall {
 public:
  Stall(const Server& server, std::shared_ptr<IoThread> io_thread)
      : store_(connect(server, inline_on(std::move(io_thread)))) {
    store_.set_async("stall", "", {}, 10s, [this](Result<bool>) {
      begun_.set_value();
      over_.get_future().wait();
    });
    begun_.get_future().wait();
  }
  ~Stall() { end(); }
  Stall(const Stall&) = delete;
  Stall& operator=(const Stall&) = delete;

  void end() {
    if (!is_over_) over_.set_value();
    is_over_ = true;
  }

 private:
  static StoreOptions inline_on(std::shared_ptr<IoThread> io_thread) {
    StoreOptions options;
    options.io_thread = std::move(io_thread);
    options.handlers = HandlerPlace::io_thread;
    return options;
  }

  std::promise<void> begun_;
  std::promise<void> over_;
  bool is_over_ = false;
  Store store_;
};

}  // namespace

TEST_CASE("a blocked I/O thread keeps no blocking call beyond its deadline and slack") {
  auto server = start_server();
  StoreOptions options;
  options.io_thread = IoThread::create("shared");
  auto store = connect(server, options);
  auto group = join(store, "g", 0, 1);
  Stall stall(server, options.io_thread);

  const auto begun = std::chrono::steady_clock::now();
  const Error error = must_fail(store.get("k", 100ms));
  CHECK(error.code == ErrorCode::outcome_unknown);
  CHECK(error.decided_by == "client");
  CHECK(error.operation == "get");
  CHECK(must_fail(group.barrier(100ms)).code == ErrorCode::outcome_unknown);
  CHECK(must_fail(Store::connect(store.address(), options, 100ms)).code == ErrorCode::unavailable);
  const auto taken = std::chrono::steady_clock::now() - begun;
  CHECK(taken < 20s);
  stall.end();
  must(store.set("k", "v"));
}

TEST_CASE("a round whose outcome is not known: nothing goes on until recover() has asked") {
  ServerOptions shared;
  shared.io_thread = IoThread::create("shared");
  auto server = start_server(shared);
  auto store = connect(server);
  auto group = join(store, "g", 0, 1);
  must(group.barrier());
  {
    const Stall stall(server, shared.io_thread);
    const Error error = must_fail(group.all_gather_obj(5, 100ms));
    CHECK(error.code == ErrorCode::outcome_unknown);
    CHECK(error.round == 2);
    CHECK(must_fail(group.barrier(100ms)).code == ErrorCode::outcome_unknown);
    CHECK(must_fail(group.send_obj(Rank{0}, 1, 100ms)).code == ErrorCode::outcome_unknown);
  }
  const Error refused = must_fail(group.barrier());
  CHECK(refused.code == ErrorCode::outcome_unknown);
  CHECK(refused.elapsed < 10s);  // not after its time of 20 s
  const RecoveredRound recovered = must(group.recover());
  CHECK(recovered.round == 2);
  CHECK(recovered.called);
  REQUIRE(recovered.values.size() == 1);
  CHECK(must(CerealCodec::decode<int>(recovered.values[0])) == 5);
  CHECK(group.counters().rounds == 2);
  must(group.barrier());
  CHECK(group.counters().objects_sent == 1);
  CHECK(must(group.recv_obj<int>(Rank{0})) == 1);
}

}  // namespace muster::test
