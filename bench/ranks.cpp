#include "ranks.h"

#include <stdexcept>
#include <utility>

#include "echo_protocol.h"
#include "load.h"
#include "wire/reply.h"

namespace muster::bench {
namespace {

/// Connections that are being made at a time. The system lets 4,096 wait to be accepted; more would
/// wait for the kernel's second try, which Muster's own client does not.
constexpr int connects_at_once = 2048;
/// A server has so many handshakes of TLS under way, and who is slow with his loses his place.
constexpr int handshakes_at_once = 256;

std::string unused_group() {
  static int number = 0;
  return "bench-" + std::to_string(++number);
}

/// When the last one but one was done: the host of a barrier leaves last.
double but_last(const std::vector<double>& took_us) {
  return took_us.size() < 2 ? took_us.back() : took_us[took_us.size() - 2];
}

/// What `work`, which is done for so many ranks, costs both sides.
template <class Work>
Json cost_of(const Subject& subject, const Swarm& swarm, int ranks, Work&& work) {
  subject.settle();
  const std::uint64_t bytes_before = swarm.bytes_received();
  const double server_before_us = subject.processor_us();
  const double client_before_us = own_processor_us();
  const auto began = Clock::now();
  work();
  const double wall_us = microseconds_since(began);
  const double client_us = own_processor_us() - client_before_us;
  subject.settle();
  const double server_us = subject.processor_us() - server_before_us;
  return {{"wall_ms", wall_us / 1e3},
          {"server_ms", server_us / 1e3},
          {"server_us_per_rank", server_us / ranks},
          {"client_ms", client_us / 1e3},
          {"client_share_of_wall", client_us / wall_us},
          {"bytes_received", swarm.bytes_received() - bytes_before}};
}

}  // namespace

Json Ranks::connect(int count) {
  const int at_once = subject_.tls() ? handshakes_at_once : connects_at_once;
  return cost_of(subject_, swarm_, count, [&] { swarm_.connect(count, at_once); });
}

Json Ranks::reconnect() {
  Times took_us;
  Json found =
      cost_of(subject_, swarm_, size(), [&] { took_us = swarm_.reconnect(connects_at_once); });
  found["p50_ms"] = quantile(took_us, 0.5) / 1e3;
  found["p99_ms"] = quantile(took_us, 0.99) / 1e3;
  return found;
}

MusterDialect& Ranks::dialect(int rank) {
  return dynamic_cast<MusterDialect&>(swarm_.dialect(rank));
}

/// `append` appends a rank's request. `confirms`: each rank acknowledges the reply at once, as it
/// has to after a barrier.
template <class Append>
Ranks::Times Ranks::exchange(Append&& append, bool confirms) {
  const auto count = static_cast<std::size_t>(size());
  Times took_us;
  took_us.reserve(count);
  const auto began = Clock::now();
  for (int rank = 0; rank < size(); ++rank) {
    append(rank);
    swarm_.flush(rank);
  }
  swarm_.receive(count, [&](int rank, std::size_t) {
    took_us.push_back(microseconds_since(began));
    if (confirms) dialect(rank).append_acknowledgement(swarm_.out(rank));
  });
  return took_us;
}

template <class Append>
Json Ranks::measure(Append&& append, bool confirms) {
  Times took_us;
  Json found = cost_of(subject_, swarm_, size(), [&] { took_us = exchange(append, confirms); });
  if (confirms) found["but_host_ms"] = but_last(took_us) / 1e3;
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
        dialect(rank).append_request(swarm_.out(rank), join);
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

void Ranks::append_call(int rank, wire::Collective collective, const std::string& value) {
  wire::CollectiveCall call;
  call.epoch = epoch_;
  call.round = round_;
  call.collective = collective;
  const bool has_value = collective == wire::Collective::all_gather ||
                         (collective == wire::Collective::broadcast && rank == 0);
  if (has_value) call.values.push_back(value);
  dialect(rank).append_request(swarm_.out(rank), std::move(call));
}

Json Ranks::round(wire::Collective collective, const std::string& value) {
  ++round_;
  return measure([&](int rank) { append_call(rank, collective, value); },
                 collective == wire::Collective::barrier);
}

void Ranks::barrier_around(const std::function<void()>& look) {
  ++round_;
  const auto append = [&](int rank) {
    if (rank == size() - 1) {
      subject_.settle();
      look();
    }
    append_call(rank, wire::Collective::barrier, {});
  };
  exchange(append, true);
}

double Ranks::barrier_us() {
  ++round_;
  const auto append = [&](int rank) { append_call(rank, wire::Collective::barrier, {}); };
  return exchange(append, true).back();
}

Json Ranks::heartbeats() {
  return measure([&](int rank) { dialect(rank).append_heartbeat(swarm_.out(rank)); }, false);
}

void Ranks::leave() {
  const auto append = [&](int rank) {
    dialect(rank).append_request(swarm_.out(rank), wire::Leave{epoch_});
  };
  exchange(append, false);
}

/// When each rank had its reply, in this order.
std::vector<double> FloorRanks::meet() {
  constexpr std::string_view body = "the only barrier";
  const EchoHead head{static_cast<std::uint32_t>(body.size()),
                      static_cast<std::uint32_t>(swarm_.size()), EchoOrder::meet};
  std::vector<double> took_us;
  const auto began = Clock::now();
  for (int rank = 0; rank < swarm_.size(); ++rank) {
    append_number(swarm_.out(rank), head);
    swarm_.out(rank) += body;
    swarm_.flush(rank);
  }
  swarm_.receive(static_cast<std::size_t>(swarm_.size()), [&](int rank, std::size_t) {
    took_us.push_back(microseconds_since(began));
    append_number(swarm_.out(rank), EchoHead{0, 0, EchoOrder::confirm});
  });
  return took_us;
}

double FloorRanks::barrier_us() { return meet().back(); }

Json FloorRanks::barrier() {
  std::vector<double> took_us;
  Json found = cost_of(echo_, swarm_, swarm_.size(), [&] { took_us = meet(); });
  found.erase("bytes_received");
  found["but_host_ms"] = but_last(took_us) / 1e3;
  found["p50_ms"] = quantile(took_us, 0.5) / 1e3;
  found["p99_ms"] = quantile(took_us, 0.99) / 1e3;
  return found;
}

}  // namespace muster::bench
