// How long it takes until the last of many waiters has the value, each on a connection of its own,
// and what it costs the server. The floor is one write to each of them, one after the other.

#include "load.h"
#include "questions.h"

namespace muster::bench {
/// All but the last connection wait; that one wakes them.
Json wake_all(const Subject& subject, Swarm& swarm, const std::string& key) {
  const int waker = swarm.size() - 1;
  const std::string value(small_value_bytes, 'v');
  for (int peer = 0; peer < waker; ++peer) {
    swarm.dialect(peer).append_wait(swarm.out(peer), key, small_value_bytes);
    if (!swarm.out(peer).empty()) swarm.flush(peer);
  }
  subject.settle();
  const double server_before_us = subject.processor_us();
  const double client_before_us = own_processor_us();
  const auto began = Clock::now();
  std::vector<double> awake_us;
  std::size_t awake = 0;
  swarm.dialect(waker).append_wake(swarm.out(waker), key, value);
  swarm.flush(waker);
  bool is_waker_answered = false;
  std::vector<bool> knows(static_cast<std::size_t>(waker), false);
  swarm.receive_until(
      [&] { return is_waker_answered && awake == static_cast<std::size_t>(waker); },
      [&](int peer, std::size_t) {
        if (peer == waker) {
          is_waker_answered = true;
          return;
        }
        if (speaks_tcpstore(subject.kind()) && !knows[static_cast<std::size_t>(peer)]) {
          // It is told that there is a value, not which.
          knows[static_cast<std::size_t>(peer)] = true;
          swarm.dialect(peer).append_get(swarm.out(peer), key, small_value_bytes);
          return;
        }
        awake_us.push_back(microseconds_since(began));
        ++awake;
      });
  const double client_us = own_processor_us() - client_before_us;
  subject.settle();
  const auto waiters = static_cast<double>(waker);
  return {{"last_us", awake_us.back()},
          {"p50_us", quantile(awake_us, 0.5)},
          {"p99_us", quantile(awake_us, 0.99)},
          {"server_us", (subject.processor_us() - server_before_us) / waiters},
          {"client_us", client_us / waiters}};
}

namespace {

void measure_waiters(Run& run, const std::vector<std::unique_ptr<Subject>>& subjects, int waiters,
                     Cores cores) {
  const Json parameters = {{"waiters", waiters}, {"cores", name_of(cores)}};
  if (!run.wants(parameters)) return;
  place_client(cores);
  std::vector<std::unique_ptr<Swarm>> swarms;
  for (const auto& subject : subjects) {
    swarms.push_back(std::make_unique<Swarm>(*subject));
    swarms.back()->connect(waiters + 1);
  }
  const int rounds = run.by_extent(1, 20, 20);
  static int number = 0;
  take_turns(rounds, subjects.size(), [&](std::size_t i) {
    const std::string key = "wake-" + std::to_string(++number);
    run.record("wake_ups", parameters, subjects[i]->name(),
               wake_all(*subjects[i], *swarms[i], key));
  });
}

}  // namespace

void measure_wake_ups(Run& run) {
  const auto subjects = run.start({Kind::echo, Kind::muster, Kind::redis, Kind::tcpstore});
  const auto counts = run.by_extent<std::vector<int>>({8}, {1, 1024}, {1, 64, 1024, 4096});
  for (const int waiters : counts) {
    for (const Cores cores : {Cores::one, Cores::two}) {
      measure_waiters(run, subjects, waiters, cores);
    }
  }
}

}  // namespace muster::bench
