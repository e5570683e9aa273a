#include "net/loop.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "net/connection.h"
#include "net/doorbell.h"
#include "net/test_loop.h"
#include "net/watcher.h"
#include "support/await.h"

namespace {

/// What happens in the middle of the next reading of the clock, once.
std::function<void()> at_next_look_at_the_clock;

}  // namespace

/// As the system's.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (at_next_look_at_the_clock) std::exchange(at_next_look_at_the_clock, nullptr)();
  return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
}

namespace {

using namespace std::chrono_literals;
using muster::net::CloseCause;
using muster::net::Connection;
using muster::net::Loop;
using muster::net::SocketAddress;
using muster::net::Timer;
using muster::net::UniqueFd;
using muster::test::TestLoop;

/// A connection and the other end of it.
struct SocketPair {
  explicit SocketPair(Loop& loop) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    connection = Connection::create(loop, UniqueFd(fds[0]), SocketAddress::local_of(fds[0]), 5s);
    other = UniqueFd(fds[1]);
  }

  void start(std::function<void(std::string_view bytes)> received) {
    connection->start(
        {std::move(received), [this](CloseCause, const std::string&) { is_over = true; }, {}});
  }

  std::shared_ptr<Connection> connection;
  UniqueFd other;
  bool is_over = false;
};

double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

TEST_CASE("work of other threads is done in the order of each thread's posts") {
  TestLoop loop;
  constexpr int each = 1000;
  std::vector<std::vector<int>> done(2);
  std::vector<std::thread> threads;
  for (std::size_t who = 0; who < done.size(); ++who) {
    threads.emplace_back([&, who] {
      for (int number = 0; number < each; ++number) {
        loop.loop().post([&done, who, number] { done[who].push_back(number); });
      }
    });
  }
  loop.run_until([&] { return done[0].size() == each && done[1].size() == each; });
  for (std::thread& thread : threads) thread.join();
  for (const auto& numbers : done) {
    for (int number = 0; number < each; ++number) {
      REQUIRE(numbers[static_cast<std::size_t>(number)] == number);
    }
  }
}

TEST_CASE("work that is posted while the loop falls asleep keeps it awake") {
  TestLoop loop;
  loop.loop().busy_polling().begin(1us);  // so that it reads the clock on its way to sleep
  loop.run_ready();
  bool is_done = false;
  const auto began = std::chrono::steady_clock::now();
  at_next_look_at_the_clock = [&] { loop.loop().post([&] { is_done = true; }); };
  loop.loop().turn(20s);
  CHECK(is_done);
  CHECK(std::chrono::steady_clock::now() - began < 10s);
}

TEST_CASE("a sleeping loop wakes for work, for its bell and to stop") {
  Loop loop;
  std::thread thread([&] { loop.run(); });
  for (int times = 0; times < 100; ++times) {
    std::atomic<bool> is_done{false};
    loop.post([&] { is_done = true; });
    while (!is_done) std::this_thread::yield();
  }
  std::atomic<int> rings{0};
  loop.post([&] { loop.bell().add([&] { ++rings; }); });
  while (rings == 0) {
    loop.bell().ring();
    std::this_thread::yield();
  }
  loop.stop();
  thread.join();
}

TEST_CASE("timers fire in their order, and neither early nor once cancelled") {
  TestLoop loop;
  Timer late(loop.loop());
  Timer early(loop.loop());
  Timer never(loop.loop());
  std::string fired;
  const auto began = std::chrono::steady_clock::now();
  late.set_after(40ms, [&] {
    CHECK(std::chrono::steady_clock::now() - began >= 40ms);
    fired += "late";
  });
  early.set_after(5ms, [&] {
    CHECK(std::chrono::steady_clock::now() - began >= 5ms);
    fired += "early,";
    never.cancel();
  });
  never.set_after(20ms, [&] { fired += "never,"; });
  loop.run_until([&] { return fired == "early,late"; });
}

TEST_CASE("a timer that is due before the one that the clock is set for fires in its time") {
  TestLoop loop;
  Timer late(loop.loop());
  Timer early(loop.loop());
  late.set_after(1h, [] {});
  loop.run_ready();  // the clock is set
  bool has_fired = false;
  early.set_after(1ms, [&] { has_fired = true; });
  loop.run_until([&] { return has_fired; });
}

TEST_CASE("a timer may be set again by what it runs") {
  TestLoop loop;
  Timer timer(loop.loop());
  int count = 0;
  const std::function<void()> again = [&] {
    if (++count < 5) timer.set_after(1ms, again);
  };
  timer.set_after(1ms, again);
  loop.run_until([&] { return count == 5; });
}

TEST_CASE("a timer that is set for the past again and again lets others have their turn") {
  TestLoop loop;
  Timer timer(loop.loop());
  SocketPair pair(loop.loop());
  std::size_t sent = 0;
  std::size_t received = 0;
  pair.start([&](std::string_view bytes) { received += bytes.size(); });
  const std::function<void()> again = [&] {
    CHECK(received == sent);
    if (sent == 5) return;
    REQUIRE(::send(pair.other.get(), "x", 1, 0) == 1);
    ++sent;
    timer.set({}, again);
  };
  timer.set({}, again);
  loop.run_until([&] { return received == 5; });
}

TEST_CASE("what is thrown in a turn keeps nobody else from being served") {
  TestLoop loop;
  std::vector<std::unique_ptr<SocketPair>> pairs;
  int served = 0;
  for (int count = 0; count < 10; ++count) {
    pairs.push_back(std::make_unique<SocketPair>(loop.loop()));
    pairs.back()->start([&](std::string_view) {
      ++served;
      throw std::bad_alloc();
    });
    REQUIRE(::send(pairs.back()->other.get(), "x", 1, 0) == 1);
  }
  Timer timer(loop.loop());
  bool has_fired = false;
  timer.set_after(0ms, [&] { has_fired = true; });
  bool is_done = false;
  loop.loop().post([] { throw std::bad_alloc(); });
  loop.loop().post([&] { is_done = true; });
  for (int turn = 0; turn < 100 && !(served == 10 && has_fired && is_done); ++turn) {
    CHECK_NOTHROW([&] {
      try {
        loop.loop().turn(5ms);
      } catch (const std::bad_alloc&) {
      }
    }());
  }
  CHECK(served == 10);
  CHECK(has_fired);
  CHECK(is_done);
}

TEST_CASE("who is closed in a turn hears nothing more in it") {
  TestLoop loop;
  SocketPair first(loop.loop());
  SocketPair second(loop.loop());
  int heard = 0;
  const auto close_both = [&](std::string_view) {
    ++heard;
    first.connection->close();
    second.connection->close();
    first.connection.reset();
    second.connection.reset();
  };
  first.start(close_both);
  second.start(close_both);
  REQUIRE(::send(first.other.get(), "x", 1, 0) == 1);
  REQUIRE(::send(second.other.get(), "x", 1, 0) == 1);
  loop.run_until([&] { return heard > 0; });
  loop.run_ready();
  CHECK(heard == 1);
}

/// Reads nothing, so the loop tells it in each turn; the first that is told lets go of both.
class Couple {
 public:
  explicit Couple(Loop& loop) : first_(loop, *this), second_(loop, *this) {}
  int told_count() const { return told_count_; }

 private:
  class Half : public muster::net::Watcher {
   public:
    Half(Loop& loop, Couple& couple) : Watcher(loop), couple_(couple) {
      const int fd = ::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);  // ready from the beginning
      REQUIRE(fd >= 0);
      hold(UniqueFd(fd));
      REQUIRE(watch(EPOLLIN) == 0);
    }
    using Watcher::let_go;

   private:
    void on_ready(std::uint32_t) override { couple_.told(); }
    Couple& couple_;
  };

  void told() {
    ++told_count_;
    first_.let_go();
    second_.let_go();
  }

  int told_count_ = 0;
  Half first_;
  Half second_;
};

TEST_CASE("a watcher that has let go of its descriptor hears of no event of the same turn") {
  TestLoop loop;
  const Couple couple(loop.loop());
  loop.run_until([&] { return couple.told_count() > 0; });
  loop.run_ready();
  CHECK(couple.told_count() == 1);
}

TEST_CASE("a turn tells of so many events that it stays short, and the next ones of the others") {
  constexpr int told_in_turn_max = 64;
  constexpr int all_count = 300;
  TestLoop loop;
  int told_count = 0;
  std::vector<std::unique_ptr<SocketPair>> pairs;
  for (int count = 0; count < all_count; ++count) {
    pairs.push_back(std::make_unique<SocketPair>(loop.loop()));
    pairs.back()->start([&told_count](std::string_view) { ++told_count; });
    REQUIRE(::write(pairs.back()->other.get(), "x", 1) == 1);
  }
  loop.run_ready();
  CHECK(told_count > 0);
  CHECK(told_count <= told_in_turn_max);
  loop.run_until([&] { return told_count == all_count; });
}

TEST_CASE("a bell that cannot write leaves the errno of whom it interrupts alone") {
  const UniqueFd full(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  const std::uint64_t most = 0xffff'ffff'ffff'fffe;  // as much as the kernel counts
  REQUIRE(::write(full.get(), &most, sizeof(most)) == sizeof(most));
  muster::net::Doorbell bell(full.get());
  errno = ENOENT;
  bell.ring();
  const int left = errno;
  CHECK(left == ENOENT);
  CHECK(bell.has_rung());
}

TEST_CASE("a peer that is gone while reading is paused costs no processor time") {
  TestLoop loop;
  SocketPair pair(loop.loop());
  pair.start([](std::string_view) {});
  pair.connection->pause_reading();
  pair.other.reset();
  const double before = processor_seconds();
  const auto until = std::chrono::steady_clock::now() + 200ms;
  while (std::chrono::steady_clock::now() < until) loop.loop().turn(200ms);
  CHECK(processor_seconds() - before < 0.1);
  CHECK_FALSE(pair.is_over);
  pair.connection->resume_reading();
  loop.run_until([&] { return pair.is_over; });
}

TEST_CASE("a closed connection of which a forked child has a copy costs no processor time") {
  TestLoop loop;
  SocketPair pair(loop.loop());
  pair.start([](std::string_view) {});
  int parent[2];
  REQUIRE(::pipe(parent) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(parent[1]);
    char byte = 0;
    ::_exit(::read(parent[0], &byte, 1) == 0 ? 0 : 1);  // until the parent lets go
  }
  ::close(parent[0]);
  pair.connection->close();
  pair.other.reset();
  const double before = processor_seconds();
  const auto until = std::chrono::steady_clock::now() + 200ms;
  while (std::chrono::steady_clock::now() < until) loop.loop().turn(200ms);
  CHECK(processor_seconds() - before < 0.1);
  ::close(parent[1]);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a loop that polls sleeps when nothing has come for as long as was wished") {
  TestLoop loop;
  loop.loop().busy_polling().begin(1ms);
  loop.loop().busy_polling().begin(1h);
  bool is_done = false;
  loop.loop().post([&] { is_done = true; });
  loop.run_until([&] { return is_done; });
  for (int turn = 0; turn < 20; ++turn) loop.loop().turn(1h);  // comes back from each at once
  loop.loop().busy_polling().end(1h);
  // It polls on until the hour is over, or until something comes.
  loop.loop().post([] {});
  loop.run_ready();
  const auto slept = [&] {
    const auto began = std::chrono::steady_clock::now();
    const double before = processor_seconds();
    loop.loop().turn(50ms);
    return std::chrono::steady_clock::now() - began >= 50ms && processor_seconds() - before < 0.02;
  };
  CHECK(muster::test::holds_soon(slept));
}

}  // namespace
