#include "load.h"

namespace muster::bench {
namespace {

/// When the requests of one connection were begun; replies come in their order.
class Begun {
 public:
  explicit Begun(std::size_t depth) : times_(depth) {}
  void push(Clock::time_point now) { times_[pushed_++ % times_.size()] = now; }
  Clock::time_point pop() { return times_[popped_++ % times_.size()]; }

 private:
  std::vector<Clock::time_point> times_;
  std::size_t pushed_ = 0;
  std::size_t popped_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Swarm>> swarms_with_keys(
    const std::vector<std::unique_ptr<Subject>>& subjects, int connections,
    std::string_view value) {
  std::vector<std::unique_ptr<Swarm>> swarms;
  for (const auto& subject : subjects) {
    auto& swarm = swarms.emplace_back(std::make_unique<Swarm>(*subject));
    swarm->connect(connections);
    for (int peer = 0; peer < swarm->size(); ++peer) {
      swarm->dialect(peer).append_set(swarm->out(peer), nth_key(peer), value, 0);
    }
    swarm->flush_all();
    swarm->receive(static_cast<std::size_t>(swarm->size()));
  }
  return swarms;
}

Json load(const Subject& subject, Swarm& swarm, const Issue& issue, const LoadOptions& options) {
  const auto depth = static_cast<std::size_t>(options.depth);
  std::vector<Begun> begun(static_cast<std::size_t>(swarm.size()), Begun(depth));
  std::vector<double> latencies_us;
  latencies_us.reserve(1U << 20);
  std::size_t in_flight = 0;
  const auto issue_one = [&](int peer, Clock::time_point now) {
    issue(swarm.dialect(peer), peer, swarm.out(peer));
    begun[static_cast<std::size_t>(peer)].push(now);
    ++in_flight;
  };

  const double server_before_us = subject.processor_us();
  const double switches_before = subject.switches();
  const double client_before_us = own_processor_us();
  const auto start = Clock::now();
  const auto end = start + options.duration;
  for (int peer = 0; peer < swarm.size(); ++peer) {
    for (std::size_t i = 0; i < depth; ++i) issue_one(peer, Clock::now());
    swarm.flush(peer);
  }
  swarm.receive_until(
      [&] { return in_flight == 0; },
      [&](int peer, std::size_t replies) {
        const auto now = Clock::now();
        for (std::size_t i = 0; i < replies; ++i) {
          const auto since = begun[static_cast<std::size_t>(peer)].pop();
          latencies_us.push_back(std::chrono::duration<double, std::micro>(now - since).count());
          --in_flight;
          if (now < end) issue_one(peer, now);
        }
      });
  const double wall_us = microseconds_since(start);
  const double client_us = own_processor_us() - client_before_us;
  subject.settle();
  const double server_us = subject.processor_us() - server_before_us;
  const double switches = subject.switches() - switches_before;
  const auto operations = static_cast<double>(latencies_us.size());
  return {{"server_us", server_us / operations},
          {"client_us", client_us / operations},
          {"wall_us", wall_us / operations},
          {"p50_us", quantile(latencies_us, 0.5)},
          {"p99_us", quantile(latencies_us, 0.99)},
          {"switches", switches / operations},
          {"operations", operations}};
}

}  // namespace muster::bench
