// A group of 64 ranks, each a session. What is counted is one rank's share: its request, and what
// it costs to decide for all.

#include <stdexcept>
#include <variant>

#include "served.h"
#include "wire/reply.h"

namespace muster::bench {
namespace {

constexpr std::size_t world_size = 64;

class Joined : public Served {
 public:
  explicit Joined(std::size_t) : Served(world_size) { join(); }

  void join() {
    for (std::size_t rank = 0; rank < world_size; ++rank) {
      wire::Join join;
      join.group = "a group";
      join.rank = static_cast<std::uint32_t>(rank);
      join.world_size = world_size;
      const auto& effects = ask(rank, join);
      if (rank + 1 == world_size) learn_epoch(effects);
    }
    round_ = 0;
    sequence_ = 0;
  }
  void leave() {
    for (std::size_t rank = 0; rank < world_size; ++rank) ask(rank, wire::Leave{epoch_});
    pass(200ms);  // who is left is told of several at once, a little later
  }

  /// `value`: of every rank, or of rank 0 alone.
  void round(wire::Collective collective, std::string_view value = {}) {
    ++round_;
    for (std::size_t rank = 0; rank < world_size; ++rank) {
      wire::CollectiveCall call;
      call.epoch = epoch_;
      call.round = round_;
      call.collective = collective;
      const bool has_value = collective == wire::Collective::all_gather ||
                             (collective == wire::Collective::broadcast && rank == 0);
      if (has_value) call.values.push_back(value);
      ask(rank, std::move(call));
    }
    // As the client does when a barrier ends; others acknowledge with their next request.
    if (collective != wire::Collective::barrier) return;
    for (std::size_t rank = world_size; rank > 0; --rank) acknowledge(rank - 1);
  }

  void send_and_receive() {
    wire::Send send;
    send.epoch = epoch_;
    send.destination = 1;
    send.sequence = sequence_;
    send.value = value();
    ask(0, send);
    wire::Receive receive;
    receive.epoch = epoch_;
    receive.sequence = sequence_++;
    ask(1, receive);
  }

 private:
  void learn_epoch(const std::vector<core::Effect>& effects) {
    const auto* const reply = std::get_if<core::SendReply>(&effects.back());
    if (reply == nullptr || reply->code != 0) throw std::runtime_error("no group was formed");
    epoch_ = wire::decode_body<wire::FormedReply>(reply->head)->epoch;
  }

  std::uint64_t epoch_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t sequence_ = 0;
};

void leave_and_join(Joined& group) {
  group.leave();
  group.join();
}

void barrier(Joined& group) { group.round(wire::Collective::barrier); }
void all_gather(Joined& group) { group.round(wire::Collective::all_gather, value()); }
void broadcast(Joined& group) { group.round(wire::Collective::broadcast, value()); }
void send_and_receive(Joined& group) { group.send_and_receive(); }

}  // namespace

std::vector<Work> group_work() {
  constexpr int ranks = world_size;
  return {{"core/leave and join, a rank of 64", with<Joined>(leave_and_join), ranks},
          {"core/barrier, a rank of 64", with<Joined>(barrier), ranks},
          {"core/all_gather, a rank of 64", with<Joined>(all_gather), ranks},
          {"core/broadcast, a rank of 64", with<Joined>(broadcast), ranks},
          {"core/send and receive", with<Joined>(send_and_receive)}};
}

}  // namespace muster::bench
