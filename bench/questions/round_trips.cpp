// One client, one request at a time: what a caller waits. The raw client writes frames itself; the
// library's two forms show what it adds, on two cores also where both ends poll before they sleep.
// And a get that must wait, which costs no more trips.

#include <condition_variable>
#include <future>
#include <mutex>

#include "load.h"
#include "muster/store.h"
#include "questions.h"

namespace muster::bench {
namespace {

constexpr std::chrono::microseconds busy_poll{50};

Json parameters_of(std::string_view client, Cores cores) {
  return {{"client", client}, {"value_bytes", small_value_bytes}, {"cores", name_of(cores)}};
}

template <class T>
T require(Result<T> result) {
  if (!result.has_value()) throw std::runtime_error(result.error().message());
  return *std::move(result);
}

/// What one round trip has cost, of those that `make_trips` makes; it gives what each took, in
/// microseconds.
template <class MakeTrips>
Json cost_of(const Subject& subject, MakeTrips&& make_trips) {
  const double server_before_us = subject.processor_us();
  const double client_before_us = own_processor_us();
  const auto began = Clock::now();
  std::vector<double> took_us = make_trips();
  const double wall_us = microseconds_since(began);
  const double client_us = own_processor_us() - client_before_us;
  subject.settle();
  const auto trips = static_cast<double>(took_us.size());
  return {{"server_us", (subject.processor_us() - server_before_us) / trips},
          {"client_us", client_us / trips},
          {"wall_us", wall_us / trips},
          {"p50_us", quantile(took_us, 0.5)},
          {"p99_us", quantile(took_us, 0.99)},
          {"operations", trips}};
}

/// Runs `trip` again and again, and says what one has cost.
template <class Trip>
Json repeat(const Subject& subject, std::chrono::milliseconds duration, Trip&& trip) {
  std::vector<double> took_us;
  took_us.reserve(1U << 18);
  return cost_of(subject, [&] {
    const auto began = Clock::now();
    for (auto now = began; now < began + duration;) {
      trip();
      const auto then = Clock::now();
      took_us.push_back(std::chrono::duration<double, std::micro>(then - now).count());
      now = then;
    }
    return std::move(took_us);
  });
}

/// Gets without a pause, each from the handler of the one before, on the I/O thread.
class InlineGets {
 public:
  InlineGets(Store& store, std::string key) : store_(store), key_(std::move(key)) {}

  std::vector<double> run(std::chrono::milliseconds duration) {
    std::unique_lock lock(mutex_);
    end_ = Clock::now() + duration;
    begin_one();
    over_.wait(lock, [this] { return is_over_; });
    return std::move(took_us_);
  }

 private:
  void begin_one() {
    began_ = Clock::now();
    store_.get_async(key_, default_timeout, [this](Result<std::string> value) {
      took_us_.push_back(microseconds_since(began_));
      if (value && Clock::now() < end_) return begin_one();
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      over_.notify_one();
    });
  }

  Store& store_;
  std::string key_;
  Clock::time_point began_;
  Clock::time_point end_;
  std::vector<double> took_us_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
};

Json inline_gets(const Subject& subject, Store& store, std::chrono::milliseconds duration) {
  InlineGets gets(store, nth_key(0));
  return cost_of(subject, [&] { return gets.run(duration); });
}

void set_first_key(Swarm& swarm) {
  swarm.dialect(0).append_set(swarm.out(0), nth_key(0), std::string(small_value_bytes, 'v'), 0);
  swarm.call(0);
}

std::string next_awaited_key() {
  static int number = 0;
  return "waiting-" + std::to_string(++number);
}

/// The first connection waits for a key that the second one then sets: from the set's being sent
/// to the waiter's having the value. The processor times are those of all requests for it.
Json waiting_get(const Subject& subject, Swarm& swarm, std::chrono::milliseconds duration) {
  const std::string value(small_value_bytes, 'v');
  return cost_of(subject, [&] {
    std::vector<double> took_us;
    for (const auto end = Clock::now() + duration; Clock::now() < end;) {
      const std::string key = next_awaited_key();
      swarm.dialect(0).append_wait(swarm.out(0), key, small_value_bytes);
      swarm.flush(0);
      swarm.dialect(1).append_add(swarm.out(1), "before");  // the waiter's request is there first
      swarm.call(1);
      const auto began = Clock::now();
      swarm.dialect(1).append_wake(swarm.out(1), key, value);
      swarm.flush(1);
      swarm.receive(2);
      if (subject.kind() == Kind::tcpstore) {  // woken with nothing but the word that it is there
        swarm.dialect(0).append_get(swarm.out(0), key, small_value_bytes);
        swarm.call(0);
      }
      took_us.push_back(microseconds_since(began));
    }
    return took_us;
  });
}

/// How many gets the server was asked for since it began.
double gets_at(Store& store) {
  for (const auto& [name, value] : require(store.status())) {
    if (name == "operations_get_count") return std::stod(value);
  }
  throw std::runtime_error("the server does not tell of its gets");
}

/// The same by the library: from the set's being sent to the handler's having the value.
/// `requests` is what the server was asked for each, by its own count.
Json waiting_get(const Subject& subject, Swarm& swarm, Store& store,
                 std::chrono::milliseconds duration) {
  const std::string value(small_value_bytes, 'v');
  const double gets_before = gets_at(store);
  Json found = cost_of(subject, [&] {
    std::vector<double> took_us;
    for (const auto end = Clock::now() + duration; Clock::now() < end;) {
      const std::string key = next_awaited_key();
      std::promise<Clock::time_point> told;
      store.get_async(key, std::chrono::seconds(10), [&told](Result<std::string> got) {
        require(std::move(got));
        told.set_value(Clock::now());
      });
      swarm.dialect(1).append_add(swarm.out(1), "before");
      swarm.call(1);
      const auto began = Clock::now();
      swarm.dialect(1).append_wake(swarm.out(1), key, value);
      swarm.call(1);
      const auto took = told.get_future().get() - began;
      took_us.push_back(std::chrono::duration<double, std::micro>(took).count());
    }
    return took_us;
  });
  found["requests"] = (gets_at(store) - gets_before) / found["operations"].get<double>();
  return found;
}

void measure_on(Run& run, const std::vector<std::unique_ptr<Subject>>& subjects, Cores cores) {
  place_client(cores);
  const auto duration = std::chrono::milliseconds(run.by_extent(10, 100, 500));
  LoadOptions options;
  options.duration = duration;
  const auto get = [](Dialect& dialect, int, std::string& out) {
    dialect.append_get(out, nth_key(0), small_value_bytes);
  };
  std::vector<std::unique_ptr<Swarm>> swarms;
  std::vector<std::unique_ptr<Swarm>> pairs;  // one that waits, and one that sets
  std::unique_ptr<Store> blocking;
  std::unique_ptr<Store> inline_store;
  for (const auto& subject : subjects) {
    swarms.push_back(std::make_unique<Swarm>(*subject));
    swarms.back()->connect(1);
    set_first_key(*swarms.back());
    pairs.push_back(std::make_unique<Swarm>(*subject));
    pairs.back()->connect(2);
    if (subject->kind() != Kind::muster) continue;
    // Their threads run where this one does.
    blocking = std::make_unique<Store>(require(Store::connect(subject->address())));
    StoreOptions at_once;
    at_once.handlers = HandlerPlace::io_thread;
    inline_store = std::make_unique<Store>(require(Store::connect(subject->address(), at_once)));
  }
  take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
    const Subject& subject = *subjects[i];
    const auto measure = [&](std::string_view client, const std::function<Json()>& how) {
      const Json parameters = parameters_of(client, cores);
      if (run.wants(parameters)) run.record("round_trips", parameters, subject.name(), how());
    };
    measure("raw", [&] { return load(subject, *swarms[i], get, options); });
    if (subject.kind() != Kind::memcached) {
      measure("raw, waiting get", [&] { return waiting_get(subject, *pairs[i], duration); });
    }
    if (subject.kind() != Kind::muster) return;
    measure("library, inline callback",
            [&] { return inline_gets(subject, *inline_store, duration); });
    measure("library, blocking",
            [&] { return repeat(subject, duration, [&] { require(blocking->get(nth_key(0))); }); });
    measure("library, waiting get",
            [&] { return waiting_get(subject, *pairs[i], *inline_store, duration); });
  });
}

/// Neither end lets its core sleep between two round trips.
void measure_polling(Run& run) {
  place_client(Cores::two);
  const auto duration = std::chrono::milliseconds(run.by_extent(10, 150, 500));
  const auto server =
      run.start(Kind::muster, {"--busy-poll", std::to_string(busy_poll.count()) + "us"});
  StoreOptions options;
  options.busy_poll = busy_poll;
  Store blocking = require(Store::connect(server->address(), options));
  options.handlers = HandlerPlace::io_thread;
  Store inline_store = require(Store::connect(server->address(), options));
  require(blocking.set(nth_key(0), std::string(small_value_bytes, 'v'), {}));
  const auto measure = [&](std::string_view client, const std::function<Json()>& how) {
    const Json parameters = parameters_of(client, Cores::two);
    if (run.wants(parameters)) run.record("round_trips", parameters, server->name(), how());
  };
  for (int round = 0; round < run.rounds(); ++round) {
    measure("library, inline callback, busy polling",
            [&] { return inline_gets(*server, inline_store, duration); });
    measure("library, blocking, busy polling",
            [&] { return repeat(*server, duration, [&] { require(blocking.get(nth_key(0))); }); });
  }
}

}  // namespace

void measure_round_trips(Run& run) {
  const auto subjects = run.start(all_kinds);
  for (const Cores cores : {Cores::one, Cores::two}) measure_on(run, subjects, cores);
  measure_polling(run);
}

}  // namespace muster::bench
