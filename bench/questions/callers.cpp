// Many threads of one process that share a store, and so one connection: blocking gets, and gets
// with an inline callback, of which each thread has some under way.

#include <atomic>
#include <latch>
#include <mutex>
#include <semaphore>
#include <thread>

#include "load.h"
#include "muster/store.h"
#include "questions.h"

namespace muster::bench {
namespace {

constexpr std::ptrdiff_t under_way_max = 16;  ///< of a thread, in the callback form

void check_got(const Result<std::string>& got) {
  if (!got) throw std::runtime_error(got.error().message());
}

/// Calls until the time is up, and tells how long each took, in microseconds.
using Caller = std::function<std::vector<double>(Clock::time_point end)>;

Caller blocking(Store& store, const std::string& key) {
  return [&store, key](Clock::time_point end) {
    std::vector<double> took_us;
    for (auto began = Clock::now(); began < end;) {
      check_got(store.get(key));
      const auto now = Clock::now();
      took_us.push_back(std::chrono::duration<double, std::micro>(now - began).count());
      began = now;
    }
    return took_us;
  };
}

Caller by_callback(Store& store, const std::string& key) {
  return [&store, key](Clock::time_point end) {
    std::vector<double> took_us;  // of the I/O thread, until all have been told
    std::counting_semaphore<under_way_max> room(under_way_max);
    while (Clock::now() < end) {
      room.acquire();
      store.get_async(key, default_timeout, [&, began = Clock::now()](Result<std::string> got) {
        check_got(got);
        took_us.push_back(microseconds_since(began));
        room.release();
      });
    }
    for (std::ptrdiff_t left = 0; left < under_way_max; ++left) room.acquire();
    return took_us;
  };
}

Json call_from(const Subject& subject, int threads, const Caller& caller,
               std::chrono::milliseconds duration) {
  std::mutex mutex;
  std::vector<double> all_us;
  std::latch ready(threads + 1);
  std::latch may_end(1);
  std::latch done(threads);
  std::vector<std::jthread> callers;
  for (int index = 0; index < threads; ++index) {
    callers.emplace_back([&] {
      ready.arrive_and_wait();
      const std::vector<double> took_us = caller(Clock::now() + duration);
      {
        const std::lock_guard lock(mutex);
        all_us.insert(all_us.end(), took_us.begin(), took_us.end());
      }
      done.count_down();
      may_end.wait();  // what a thread's end takes is nobody's call
    });
  }
  const double server_before_us = subject.processor_us();
  const double client_before_us = own_processor_us();
  const auto began = Clock::now();
  ready.arrive_and_wait();
  done.wait();
  const double wall_us = microseconds_since(began);
  const double client_us = own_processor_us() - client_before_us;
  subject.settle();
  const auto calls = static_cast<double>(all_us.size());
  const double server_us = subject.processor_us() - server_before_us;
  may_end.count_down();
  return {{"server_us", server_us / calls},   {"client_us", client_us / calls},
          {"wall_us", wall_us / calls},       {"p50_us", quantile(all_us, 0.5)},
          {"p99_us", quantile(all_us, 0.99)}, {"operations", calls}};
}

}  // namespace

void measure_callers(Run& run) {
  const auto server = run.start(Kind::muster);
  const std::chrono::milliseconds duration(run.by_extent(5, 60, 300));
  const std::string key = nth_key(0);
  for (const Cores cores : {Cores::one, Cores::two}) {
    place_client(cores);
    StoreOptions options;
    options.handlers = HandlerPlace::io_thread;
    auto store = Store::connect(server->address(), options);
    if (!store) throw std::runtime_error(store.error().message());
    if (const auto set = store->set(key, std::string(small_value_bytes, 'v')); !set.has_value()) {
      throw std::runtime_error(set.error().message());
    }
    for (int round = 0; round < run.rounds(); ++round) {
      for (const int threads : {1, 8, 64}) {
        const auto measure = [&](std::string_view form, const Caller& caller) {
          const Json parameters = {{"form", form}, {"threads", threads}, {"cores", name_of(cores)}};
          if (!run.wants(parameters)) return;
          run.record("callers", parameters, server->name(),
                     call_from(*server, threads, caller, duration));
        };
        measure("blocking", blocking(*store, key));
        measure("callback", by_callback(*store, key));
      }
    }
  }
}

}  // namespace muster::bench
