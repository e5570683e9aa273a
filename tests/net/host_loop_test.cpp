#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "net/io_thread.h"
#include "net/watcher.h"

// A loop that a host's own waits for: its descriptor says when there is something to do.

namespace {

using namespace std::chrono_literals;
using muster::IoThread;
using muster::net::Timer;
using muster::net::UniqueFd;
using muster::net::Watcher;

bool is_readable(IoThread& io, std::chrono::milliseconds at_most = 0ms) {
  pollfd entry{io.descriptor(), POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(at_most.count())) == 1;
}

/// As a host does it, until `is_over`.
template <class Condition>
void serve_until(IoThread& io, Condition is_over) {
  while (!is_over()) {
    REQUIRE(is_readable(io, 20s));
    io.serve_ready();
  }
}

/// Serves until nothing is left to do.
void serve_all(IoThread& io) {
  while (is_readable(io)) io.serve_ready();
}

/// Is ready all the time, and counts how often it is told.
class Ready final : public Watcher {
 public:
  explicit Ready(IoThread& io) : Watcher(io.impl().loop()) {
    hold(UniqueFd(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)));
    REQUIRE(watch(EPOLLIN) == 0);
  }
  int told_count = 0;

 private:
  void on_ready(std::uint32_t) override { ++told_count; }
};

TEST_CASE("the descriptor is readable while work waits, and only then") {
  const auto io = IoThread::create_for_host_loop();
  auto& loop = io->impl().loop();
  CHECK_FALSE(is_readable(*io));
  int done_count = 0;
  loop.post([&] { ++done_count; });
  loop.post([&] { ++done_count; });
  CHECK(is_readable(*io));
  CHECK(is_readable(*io));  // as long as nobody serves
  CHECK(io->serve_ready());
  CHECK(done_count == 2);
  serve_all(*io);
  CHECK_FALSE(io->serve_ready());
  std::thread([&] { loop.post([&] { ++done_count; }); }).join();
  serve_until(*io, [&] { return done_count == 3; });
  io->wake();
  CHECK(is_readable(*io));
}

TEST_CASE(
    "work that is posted by work waits for the next turn, and keeps the descriptor readable") {
  const auto io = IoThread::create_for_host_loop();
  auto& loop = io->impl().loop();
  bool is_done = false;
  loop.post([&] { loop.post([&] { is_done = true; }); });
  CHECK(io->serve_ready());
  CHECK_FALSE(is_done);
  CHECK(is_readable(*io));
  CHECK(io->serve_ready());
  CHECK(is_done);
}

TEST_CASE("timers make the descriptor readable, whether they were set in a turn or outside") {
  const auto io = IoThread::create_for_host_loop();
  auto& loop = io->impl().loop();
  int fired_count = 0;
  Timer first(loop);
  Timer second(loop);
  loop.post([&] {
    first.set_after(20ms, [&] {
      ++fired_count;
      second.set_after(0ms, [&] { ++fired_count; });
    });
  });
  serve_until(*io, [&] { return fired_count == 2; });
  Timer earlier(loop);
  io->impl().run_here([&] {
    first.set_after(1h, [] {});
    earlier.set_after(20ms, [&] { ++fired_count; });
  });
  CHECK(fired_count == 2);
  serve_until(*io, [&] { return fired_count == 3; });
  serve_all(*io);
  CHECK_FALSE(is_readable(*io));
  first.cancel();
}

TEST_CASE("more that is ready than a turn takes keeps the descriptor readable") {
  const auto io = IoThread::create_for_host_loop();
  std::vector<std::unique_ptr<Ready>> watchers;
  for (int count = 0; count < 1100; ++count) watchers.push_back(std::make_unique<Ready>(*io));
  const auto all_are_told = [&] {
    for (const auto& watcher : watchers) {
      if (watcher->told_count == 0) return false;
    }
    return true;
  };
  CHECK(io->serve_ready());
  CHECK_FALSE(all_are_told());
  serve_until(*io, all_are_told);
  CHECK(is_readable(*io));  // level-triggered: they are ready still
  watchers.clear();
  serve_all(*io);
  CHECK_FALSE(is_readable(*io));
}

TEST_CASE("what throws in a turn leaves the rest for the next one") {
  const auto io = IoThread::create_for_host_loop();
  auto& loop = io->impl().loop();
  bool has_failed = false;
  bool is_done = false;
  loop.on_failure([&](auto) { has_failed = true; });
  loop.post([] { throw std::bad_alloc(); });
  loop.post([&] { is_done = true; });
  CHECK(io->serve_ready());
  CHECK(has_failed);
  serve_until(*io, [&] { return is_done; });
}

TEST_CASE("a ring from anywhere is answered in the next turn") {
  const auto io = IoThread::create_for_host_loop();
  auto& bell = io->impl().loop().bell();
  int answered_count = 0;
  bell.add([&] {
    if (++answered_count == 1) bell.ring();
  });
  bell.ring();
  serve_until(*io, [&] { return answered_count == 2; });
}

TEST_CASE("busy polling does not keep a turn from ending, nor the descriptor from being readable") {
  const auto io = IoThread::create_for_host_loop();
  auto& loop = io->impl().loop();
  io->impl().run_here([&] { loop.busy_polling().begin(muster::busy_poll_max); });
  bool is_done = false;
  loop.post([] {});
  CHECK(io->serve_ready());
  loop.post([&] { is_done = true; });
  serve_until(*io, [&] { return is_done; });
  io->impl().run_here([&] { loop.busy_polling().end(muster::busy_poll_max); });
}

TEST_CASE("one thread serves at a time, which may be another one each time") {
  const auto io = IoThread::create_for_host_loop();
  auto& impl = io->impl();
  CHECK(impl.would_deadlock());  // the one that made it is the first
  CHECK_FALSE(impl.on_io_thread());
  bool is_done = false;
  impl.loop().post([&] {
    CHECK(impl.on_io_thread());
    CHECK_FALSE(io->serve_ready());
    CHECK_FALSE(io->run_until([] { return true; }));
    CHECK_FALSE(impl.run_here([] { FAIL("inside of a turn"); }));
    std::thread([&] {
      CHECK_FALSE(io->serve_ready());
      CHECK_FALSE(impl.would_deadlock());
    }).join();
    is_done = true;
  });
  std::thread([&] {
    CHECK(io->serve_ready());
    CHECK(impl.would_deadlock());
  }).join();
  CHECK(is_done);
  CHECK_FALSE(impl.would_deadlock());
  CHECK_FALSE(io->run_until([] { return true; }));
  io->serve_ready();
  CHECK(impl.would_deadlock());
  CHECK(io->run_until([] { return true; }));
}

TEST_CASE("work that is to run here has run, or whoever asked for it knows that it has not") {
  const auto io = IoThread::create_for_host_loop();
  auto& impl = io->impl();
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) io->serve_ready();
  });
  int wrong_count = 0;
  for (int count = 0; count < 20'000; ++count) {
    io->serve_ready();  // from then on this thread may serve, until the other one does
    bool has_run = false;
    const bool is_done = impl.run_here([&] { has_run = true; });
    if (is_done != has_run) ++wrong_count;
  }
  is_over = true;
  other.join();
  CHECK(wrong_count == 0);
}

TEST_CASE("handlers are work of the loop, and no thread is started for them") {
  const auto io = IoThread::create_for_host_loop();
  std::thread::id ran_on;
  auto* const task = new muster::net::FunctionTask([&] { ran_on = std::this_thread::get_id(); });
  io->impl().post_handler(*task);
  CHECK(ran_on == std::thread::id());
  CHECK_FALSE(io->impl().on_handler_thread());
  serve_until(*io, [&] { return ran_on != std::thread::id(); });
  CHECK(ran_on == std::this_thread::get_id());
}

TEST_CASE("at its end what is ready is served, and the rest let go of") {
  const auto witness = std::make_shared<int>(0);
  const auto io = IoThread::create_for_host_loop();
  auto& loop = io->impl().loop();
  std::function<void()> again = [&, witness] {
    ++*witness;
    loop.post(again);
  };
  loop.post(again);
  io->finish();
  CHECK(*witness > 1);
  CHECK(witness.use_count() == 2);  // `again` here, and none in the loop
  loop.post([] { FAIL("nobody serves any more"); });
  CHECK_FALSE(io->serve_ready());
}

TEST_CASE("an end that is asked for in a turn comes with the end of that turn") {
  const auto witness = std::make_shared<int>(0);
  const auto io = IoThread::create_for_host_loop();
  auto& loop = io->impl().loop();
  std::function<void()> again = [&, witness] {
    ++*witness;
    loop.post(again);
  };
  bool is_done = false;
  loop.post([&] {
    io->finish();
    loop.post(again);
    loop.post([&] { is_done = true; });
  });
  CHECK(io->serve_ready());
  CHECK(is_done);
  CHECK(*witness > 1);
  CHECK(witness.use_count() == 2);  // as above
  CHECK_FALSE(io->serve_ready());
}

TEST_CASE("a forked child serves nothing, and the parent goes on") {
  auto io = IoThread::create_for_host_loop();
  bool is_done = false;
  io->impl().loop().post([&] { is_done = true; });
  const pid_t child = ::fork();
  if (child == 0) {
    const bool has_served = io->descriptor() != -1 || io->serve_ready();
    io->finish();
    io.reset();
    ::_exit(has_served || is_done ? 1 : 0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  serve_until(*io, [&] { return is_done; });
}

TEST_CASE("other I/O threads have no descriptor, and are not served so") {
  for (const auto& io : {IoThread::create(), IoThread::create_for_caller()}) {
    CHECK(io->descriptor() == -1);
    CHECK_FALSE(io->serve_ready());
  }
}

}  // namespace
