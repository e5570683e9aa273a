#include "net/io_thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "net/connection.h"

namespace {

using namespace std::chrono_literals;
using muster::IoThread;
using muster::net::Connection;
using muster::net::SocketAddress;
using muster::net::Timer;
using muster::net::UniqueFd;

template <class T>
T within_time(std::future<T> future) {
  if (future.wait_for(20s) != std::future_status::ready) FAIL("it did not happen in time");
  return future.get();
}

void post_handler(IoThread::Impl& impl, std::function<void()> work) {
  impl.post_handler(*new muster::net::FunctionTask(std::move(work)));
}

/// Runs `work` on the I/O thread and waits for it.
void run_on(IoThread& io, const std::function<void()>& work) {
  std::promise<void> done;
  io.impl().loop().post([&] {
    work();
    done.set_value();
  });
  within_time(done.get_future());
}

TEST_CASE("both threads carry the name and block all signals") {
  const auto io = IoThread::create("a-name-of-more-than-15-bytes");
  const auto look = [&io](bool on_io) {
    char name[32] = "";
    ::pthread_getname_np(::pthread_self(), name, sizeof(name));
    CHECK(std::string(name) == "a-name-of-more-");
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGALRM, SIGCHLD}) {
      CHECK(::sigismember(&blocked, signal) == 1);
    }
    CHECK(io->impl().on_io_thread() == on_io);
    CHECK(io->impl().on_handler_thread() != on_io);
  };
  run_on(*io, [&] { look(true); });
  std::promise<void> done;
  post_handler(io->impl(), [&] {
    look(false);
    done.set_value();
  });
  within_time(done.get_future());
  CHECK_FALSE(io->impl().on_io_thread());
}

TEST_CASE("handlers run in order, all of them, also one after another that throws") {
  std::vector<int> order;
  {
    const auto io = IoThread::create();
    for (int number = 0; number < 100; ++number) {
      post_handler(io->impl(), [&order, number] {
        order.push_back(number);
        if (number == 50) throw std::runtime_error("a handler of the application");
      });
    }
  }
  REQUIRE(order.size() == 100);
  CHECK(order[99] == 99);
}

TEST_CASE("what throws on the I/O thread does not end it") {
  const auto io = IoThread::create();
  io->impl().loop().post([] { throw std::bad_alloc(); });
  run_on(*io, [] {});
}

TEST_CASE("a thread of the caller serves while it runs") {
  const auto io = IoThread::create_for_caller();
  std::vector<int> order;
  auto& loop = io->impl().loop();
  loop.post([&] { order.push_back(1); });
  CHECK(io->impl().on_io_thread());
  CHECK(order.empty());
  CHECK(io->run_until([&] { return !order.empty(); }));
  loop.post([] { throw std::bad_alloc(); });
  loop.post([&] {
    order.push_back(2);
    CHECK_FALSE(io->run_until([] { return true; }));  // it does already
  });
  CHECK(io->run_until([&] { return order.size() == 2; }));
  CHECK(io->run_until([] { return true; }));
  std::thread([&] {
    CHECK_FALSE(io->impl().on_io_thread());
    CHECK_FALSE(io->run_until([] { return true; }));
  }).join();
  CHECK_FALSE(IoThread::create()->run_until([] { return true; }));
}

TEST_CASE("what the question of the thread that serves throws passes to who asked it") {
  const auto io = IoThread::create_for_caller();
  bool has_failed = false;
  io->impl().loop().on_failure([&](auto) { has_failed = true; });
  CHECK_THROWS_AS(io->run_until([]() -> bool { throw std::runtime_error("mine"); }),
                  std::runtime_error);
  CHECK_FALSE(has_failed);
  CHECK(io->run_until([] { return true; }));
}

TEST_CASE("handlers end before the thread of the caller goes on without them") {
  std::atomic<bool> has_ended{false};
  {
    const auto io = IoThread::create_for_caller();
    std::promise<void> begun;
    post_handler(io->impl(), [&] {
      begun.set_value();
      std::promise<void>().get_future().wait_for(50ms);
      has_ended = true;
    });
    within_time(begun.get_future());
  }
  CHECK(has_ended);
}

std::atomic<bool> is_interrupted{false};
std::atomic<IoThread*> interrupted{nullptr};

TEST_CASE("a handler of signals may wake the thread that serves") {
  const auto io = IoThread::create_for_caller();
  interrupted = io.get();
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {
    is_interrupted = true;
    interrupted.load()->wake();
  };
  REQUIRE(::sigaction(SIGUSR1, &action, &before) == 0);
  Timer timer(io->impl().loop());
  timer.set_after(20ms, [] { ::raise(SIGUSR1); });
  CHECK(io->run_until([] { return is_interrupted.load(); }));
  is_interrupted = false;
  const pid_t self = ::getpid();
  std::thread([self] { ::kill(self, SIGUSR1); }).join();  // while it does not serve
  CHECK(io->run_until([] { return is_interrupted.load(); }));
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("the last reference may be dropped on the I/O thread") {
  auto io = IoThread::create();
  std::weak_ptr<IoThread> watch = io;
  std::promise<void> is_last;
  std::promise<void> dropped;
  io->impl().loop().post([&, last = io]() mutable {
    is_last.get_future().wait();
    last.reset();
    dropped.set_value();
  });
  io.reset();
  is_last.set_value();
  within_time(dropped.get_future());
  CHECK(watch.expired());
}

TEST_CASE("the last reference may be dropped on the handler thread") {
  auto io = IoThread::create();
  std::promise<void> dropped;
  auto& impl = io->impl();
  post_handler(impl, [&dropped, last = std::move(io)]() mutable {
    last.reset();
    dropped.set_value();
  });
  within_time(dropped.get_future());
}

TEST_CASE("work that was not done when the thread ends is let go") {
  const auto witness = std::make_shared<int>(1);
  std::optional<Timer> timer;
  {
    const auto io = IoThread::create();
    timer.emplace(io->impl().loop());
    run_on(*io, [&] { timer->set_after(1h, [witness] {}); });
    CHECK(witness.use_count() == 2);
  }
  CHECK(witness.use_count() == 1);
}

TEST_CASE("a forked child closes its copies of the sockets and leaves the parent's alone") {
  auto io = IoThread::create();
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  std::promise<std::string> heard;
  std::shared_ptr<Connection> connection;
  run_on(*io, [&] {
    connection = Connection::create(io->impl().loop(), UniqueFd(fds[0]),
                                    SocketAddress::local_of(fds[0]), 5s);
    connection->start({[&](std::string_view bytes) { heard.set_value(std::string(bytes)); },
                       [](muster::net::CloseCause, const std::string&) {},
                       {}});
  });
  const pid_t child = ::fork();
  if (child == 0) {
    const bool knows = io->impl().forked();
    io.reset();  // closes, and waits for no thread: there is none
    const bool is_closed = ::fcntl(fds[0], F_GETFD) < 0;
    ::_exit(knows && is_closed ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_FALSE(io->impl().forked());
  REQUIRE(::send(fds[1], "alive", 5, 0) == 5);
  CHECK(within_time(heard.get_future()) == "alive");
  run_on(*io, [&] { connection->close(); });
  ::close(fds[1]);
}

}  // namespace
