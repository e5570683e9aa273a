#include "communicator/lifecycle.h"

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "client/failure.h"
#include "support/ranks.h"

// Why a communicator ends, and what its host hears of it.

namespace muster::communicator {
namespace {

using namespace std::chrono_literals;
using Codes = std::vector<ErrorCode>;

Error error_of(ErrorCode code) { return client::failure(code, ""); }

/// A lifecycle whose host keeps what it hears.
struct Subject {
  explicit Subject(OnLoss on_loss = OnLoss::abort) {
    lifecycle = std::make_shared<Lifecycle>(on_loss, [this](const Error& error) {
      const std::lock_guard lock(mutex);
      heard.push_back(error.code);
    });
  }
  Codes codes() {
    const std::lock_guard lock(mutex);
    return heard;
  }

  std::mutex mutex;
  Codes heard;
  std::shared_ptr<Lifecycle> lifecycle;
};

TEST_CASE("a commit fails if a loss has closed the gate before, and the host hears nothing") {
  Subject subject;
  CHECK(subject.lifecycle->close(error_of(ErrorCode::rank_lost)));
  const auto ended = subject.lifecycle->commit({7s, 3s});
  REQUIRE(ended);
  CHECK(ended->code == ErrorCode::rank_lost);
  CHECK(subject.lifecycle->creation_times().total == 0s);
  subject.lifecycle->notify_host();
  CHECK(subject.codes().empty());
}

TEST_CASE("the first reason counts, and the host hears it once the communicator is committed") {
  Subject subject;
  subject.lifecycle->notify_host();
  CHECK_FALSE(subject.lifecycle->commit({7s, 3s}));
  CHECK(subject.lifecycle->creation_times().total == 7s);
  CHECK(subject.lifecycle->creation_times().library == 3s);
  subject.lifecycle->notify_host();
  CHECK(subject.codes().empty());
  CHECK(subject.lifecycle->close(error_of(ErrorCode::rank_left)));
  CHECK_FALSE(subject.lifecycle->close(error_of(ErrorCode::aborted)));
  CHECK(subject.lifecycle->gate()->reason()->code == ErrorCode::rank_left);
  subject.lifecycle->notify_host();
  CHECK(subject.codes() == Codes{ErrorCode::rank_left});
}

TEST_CASE("an exception of the host's handler goes nowhere") {
  const auto lifecycle = std::make_shared<Lifecycle>(
      OnLoss::abort, [](const Error&) { throw std::runtime_error("from the host"); });
  CHECK_FALSE(lifecycle->commit({}));
  lifecycle->close(error_of(ErrorCode::aborted));
  lifecycle->notify_host();
}

TEST_CASE("a close wakes the thread that waits for a cause") {
  Subject subject;
  std::thread closing([&] {
    test::let_pass(20ms);  // so that the other thread sleeps
    subject.lifecycle->close(error_of(ErrorCode::rank_lost));
  });
  const auto began = std::chrono::steady_clock::now();
  const auto cause = subject.lifecycle->await_cause(60s);
  CHECK(std::chrono::steady_clock::now() - began < 30s);
  closing.join();
  REQUIRE(cause);
  CHECK(cause->code == ErrorCode::rank_lost);
  CHECK_FALSE(Subject().lifecycle->await_cause(1ms));
}

/// Rank 0 of a group of two watches it; then rank 1 leaves.
void watch_and_leave(Subject& subject, const std::function<void()>& before,
                     const Lifecycle::Callback& end) {
  auto server = test::start_server();
  std::promise<void> watched;
  test::run_ranks(2, [&](int rank) {
    auto store = test::connect(server);
    auto group = test::join(store, "g", rank, 2);
    if (rank == 1) {
      watched.get_future().wait();
      return test::must(group.leave());
    }
    subject.lifecycle->watch(group, end);
    before();
    watched.set_value();
    const auto cause = subject.lifecycle->await_cause(20s);
    REQUIRE(cause);
    CHECK(cause->code == ErrorCode::rank_left);
    subject.lifecycle->unwatch();  // after it `end` and the host's handler have returned
  });
}

TEST_CASE("a loss ends what is to be aborted for it, and what is not committed") {
  for (const OnLoss on_loss : {OnLoss::abort, OnLoss::notify}) {
    Subject subject(on_loss);
    Codes ended;
    watch_and_leave(
        subject,
        [&] {
          if (on_loss == OnLoss::abort) CHECK_FALSE(subject.lifecycle->commit({}));
        },
        [&](const Error& error) { ended.push_back(error.code); });
    CHECK(ended == Codes{ErrorCode::rank_left});
    CHECK(subject.codes().empty());  // `end` is to call `close` and `notify_host`
  }
}

TEST_CASE("with OnLoss::notify a loss is told to the host, and does not end it") {
  Subject subject(OnLoss::notify);
  Codes ended;
  watch_and_leave(
      subject, [&] { CHECK_FALSE(subject.lifecycle->commit({})); },
      [&](const Error& error) { ended.push_back(error.code); });
  CHECK(ended.empty());
  CHECK(subject.codes() == Codes{ErrorCode::rank_left});
  CHECK_FALSE(subject.lifecycle->gate()->is_closed());

  // What was heard before a call counts for it only if it waited for that rank.
  const auto later = Lifecycle::Clock::now();
  CHECK_FALSE(subject.lifecycle->await_cause(0ms, later));
  CHECK_FALSE(subject.lifecycle->await_cause(0ms, later, 0));
  CHECK(subject.lifecycle->await_cause(0ms, later, 1)->code == ErrorCode::rank_left);
}

TEST_CASE("losses of the group that was watched before explain nothing in the next one") {
  Subject subject(OnLoss::notify);
  watch_and_leave(
      subject, [&] { CHECK_FALSE(subject.lifecycle->commit({})); }, [](const Error&) {});
  REQUIRE(subject.lifecycle->await_cause(0ms));
  auto server = test::start_server();
  auto store = test::connect(server);
  auto next = test::join(store, "next", 0, 1);
  subject.lifecycle->watch(next, [](const Error&) {});
  CHECK_FALSE(subject.lifecycle->await_cause(0ms));
  subject.lifecycle->unwatch();
}

TEST_CASE("when the server has restarted nobody can tell a cause, until a group is watched again") {
  Subject subject;
  std::optional<Server> server = test::start_disturbed_server();
  ServerOptions same;
  same.listen = {server->addresses().front()};
  auto store = test::connect(*server);
  auto before = test::join(store, "g", 0, 1);
  subject.lifecycle->watch(before, [](const Error&) {});
  std::thread restarting([&] {
    test::let_pass(20ms);  // so that the other thread sleeps
    server.reset();
    server = test::start_disturbed_server(same);
  });
  const auto began = std::chrono::steady_clock::now();
  CHECK_FALSE(subject.lifecycle->await_cause(20s));
  CHECK(std::chrono::steady_clock::now() - began < 15s);
  CHECK_FALSE(subject.lifecycle->hears_losses());
  CHECK_FALSE(subject.lifecycle->gate()->is_closed());
  restarting.join();

  test::must(store.reopen());
  auto again = test::join(store, "g", 0, 1);
  subject.lifecycle->watch(again, [](const Error&) {});
  CHECK(subject.lifecycle->hears_losses());
  subject.lifecycle->unwatch();
}

TEST_CASE("a rank that leaves while the communicator is closed in order does not end it") {
  Subject subject;
  Codes ended;
  watch_and_leave(
      subject,
      [&] {
        CHECK_FALSE(subject.lifecycle->commit({}));
        subject.lifecycle->begin_closing();
      },
      [&](const Error& error) { ended.push_back(error.code); });
  CHECK(ended.empty());
  CHECK(subject.codes().empty());
}

}  // namespace
}  // namespace muster::communicator
