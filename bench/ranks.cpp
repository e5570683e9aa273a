#include "ranks.h"

#include <stdexcept>

#include "load.h"
#include "wire/reply.h"

namespace muster::bench {
namespace {

/// Connections that are being made at a time. The system lets 4,096 wait to be accepted; more would
/// wait for the kernel's second try, which Muster's own client does not.
constexpr int at_once = 2048;

std::string unused_group() {
  static int number = 0;
  return "bench-" + std::to_string(++number);
}

}  // namespace

/// What `work`, which is done for all ranks, costs both sides.
template <class Work>
Json Ranks::cost_of(Work&& work) {
  subject_.settle();
  const std::uint64_t bytes_before = swarm_.bytes_received();
  const double server_before_us = subject_.processor_us();
  const double client_before_us = own_processor_us();
  const auto began = Clock::now();
  work(began);
  const double wall_us = microseconds_since(began);
  const double client_us = own_processor_us() - client_before_us;
  subject_.settle();
  const double server_us = subject_.processor_us() - server_before_us;
  return {{"wall_ms", wall_us / 1e3},
          {"server_ms", server_us / 1e3},
          {"server_us_per_rank", server_us / size()},
          {"client_ms", client_us / 1e3},
          {"client_share_of_wall", client_us / wall_us},
          {"bytes_received", swarm_.bytes_received() - bytes_before}};
}

Json Ranks::connect(int count) {
  return cost_of([&](Clock::time_point) { swarm_.connect(count, at_once); });
}

MusterDialect& Ranks::dialect(int rank) {
  return dynamic_cast<MusterDialect&>(swarm_.dialect(rank));
}

/// From the first rank's request to the last one's reply. `confirms`: each rank acknowledges the
/// reply at once, as it has to after a barrier.
template <class Request>
Json Ranks::measure(Request&& request, bool confirms) {
  const auto count = static_cast<std::size_t>(size());
  std::vector<double> took_us;
  took_us.reserve(count);
  Json found = cost_of([&](Clock::time_point began) {
    for (int rank = 0; rank < size(); ++rank) {
      dialect(rank).append_request(swarm_.out(rank), request(rank));
      swarm_.flush(rank);
    }
    swarm_.receive(count, [&](int rank, std::size_t) {
      took_us.push_back(microseconds_since(began));
      if (confirms) dialect(rank).append_acknowledgement(swarm_.out(rank));
    });
  });
  found["p50_ms"] = quantile(took_us, 0.5) / 1e3;
  found["p99_ms"] = quantile(took_us, 0.99) / 1e3;
  return found;
}

Json Ranks::join() {
  const std::string group = unused_group();
  for (int rank = 0; rank < size(); ++rank) dialect(rank).keep_replies(true);
  Json found = measure(
      [&](int rank) {
        wire::Join join;
        join.group = group;
        join.rank = static_cast<std::uint32_t>(rank);
        join.world_size = static_cast<std::uint32_t>(size());
        return join;
      },
      false);
  for (int rank = 0; rank < size(); ++rank) {
    const auto formed = wire::decode_body<wire::FormedReply>(dialect(rank).reply());
    if (!formed || (epoch_ = formed->epoch) == 0) throw std::runtime_error("no epoch was formed");
    dialect(rank).keep_replies(false);
  }
  round_ = 0;
  return found;
}

Json Ranks::round(wire::Collective collective, const std::string& value) {
  ++round_;
  const auto request = [&](int rank) {
    wire::CollectiveCall call;
    call.epoch = epoch_;
    call.round = round_;
    call.collective = collective;
    const bool has_value = collective == wire::Collective::all_gather ||
                           (collective == wire::Collective::broadcast && rank == 0);
    if (has_value) call.values.push_back(value);
    return call;
  };
  return measure(request, collective == wire::Collective::barrier);
}

void Ranks::leave() {
  measure([&](int) { return wire::Leave{epoch_}; }, false);
}

}  // namespace muster::bench
