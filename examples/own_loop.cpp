// A program with a loop of its own, in poll here: Muster's descriptor is one more to wait for, and
// there is no further thread.

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "in_one_process.h"

using namespace std::chrono_literals;
using example::require;
using muster::Result;

namespace {

/// The program's own descriptor: a clock that ticks every 2 ms.
int start_clock() {
  const int clock = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  itimerspec every{};
  every.it_value.tv_nsec = every.it_interval.tv_nsec = 2'000'000;
  require(clock >= 0 && ::timerfd_settime(clock, 0, &every, nullptr) == 0, "the clock ticks");
  return clock;
}

/// Counts in the store, one call after the other, and runs where the loop serves Muster.
class Counter {
 public:
  explicit Counter(muster::Store& store) : store_(store) { count(); }
  std::int64_t number() const { return number_; }

 private:
  void count() {
    store_.add_async("number", 1, 5s, [this](Result<std::int64_t> number) {
      number_ = require(std::move(number));
      if (number_ < 1000) count();
    });
  }

  muster::Store& store_;
  std::int64_t number_ = 0;
};

void run(const std::shared_ptr<muster::IoThread>& io, int clock) {
  muster::ServerOptions server_options;
  server_options.io_thread = io;
  const auto server = require(muster::Server::start(server_options));
  muster::StoreOptions options;
  options.io_thread = io;
  std::optional<muster::Store> store;
  std::optional<Counter> counter;
  muster::Store::connect_async(server.addresses().front(), options, 5s,
                               [&](Result<muster::Store> connected) {
                                 store.emplace(require(std::move(connected)));
                                 counter.emplace(*store);
                               });

  std::uint64_t tick_count = 0;
  pollfd watched[] = {{io->descriptor(), POLLIN, 0}, {clock, POLLIN, 0}};
  while (!counter || counter->number() < 1000 || tick_count < 5) {
    ::poll(watched, 2, -1);
    if (watched[0].revents != 0) io->serve_ready();  // what is ready; it never waits
    std::uint64_t ticks = 0;
    if (watched[1].revents != 0 && ::read(clock, &ticks, sizeof(ticks)) > 0) tick_count += ticks;
  }
  require(!store->get("number") &&
              store->get("number").error().code == muster::ErrorCode::would_deadlock,
          "a blocking call would wait for this very thread: it is refused");
}

}  // namespace

int main() {
  const auto io = muster::IoThread::create_for_host_loop();
  require(io != nullptr, "there is a descriptor left");
  const int clock = start_clock();
  run(io, clock);
  io->finish();  // the ends of the store and the server
  ::close(clock);
  std::cout << "own loop: as promised\n";
  return 0;
}
