#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "client.h"
#include "network.h"
#include "scheduler.h"

namespace muster::sim {

/// What goes wrong, again and again, until it is told to end.
class Weather {
 public:
  enum class Kind {
    rough,  ///< short enough that nobody may see an error: below 0.8 of the session timeout
    storm,  ///< as long as it likes: sessions expire
  };

  Weather(Kind kind, Scheduler& scheduler, Network& network, Random& random,
          std::deque<Client>& clients)
      : kind_(kind), scheduler_(scheduler), network_(network), random_(random), clients_(clients) {}

  void begin() { plan(); }
  void end() { has_ended_ = true; }

 private:
  void plan() {
    scheduler_.after(random_.between(std::chrono::milliseconds(100), std::chrono::seconds(2)),
                     [this] { strike(); });
  }

  void strike() {
    if (has_ended_) return;
    const std::uint64_t number = random_.below(clients_.size());
    Client& client = clients_[number];
    // Two short cuts on end would be a long one.
    const bool is_well = client.established() && scheduler_.now() >= rests_until_[number];
    if (is_well || kind_ == Kind::storm) strike(number, client);
    plan();
  }

  void strike(std::uint64_t number, Client& client) {
    const auto longest = kind_ == Kind::rough ? std::chrono::seconds(5) : std::chrono::seconds(30);
    const Duration duration = random_.between(std::chrono::milliseconds(1), longest);
    rests_until_[number] = scheduler_.now() + duration + std::chrono::seconds(3);
    switch (random_.below(4)) {
      case 0: return network_.block(number, scheduler_.now() + duration);
      case 1: return client.stop_for(duration);
      default: {
        // An end that learns nothing has to find out. Who does not come back within the grace
        // after the server has learned is lost.
        const bool client_learns = !random_.one_in(4);
        const bool server_may_learn = client_learns || kind_ == Kind::storm;
        return network_.cut(number, client_learns, server_may_learn && random_.one_in(2));
      }
    }
  }

  Kind kind_;
  Scheduler& scheduler_;
  Network& network_;
  Random& random_;
  std::deque<Client>& clients_;
  std::map<std::uint64_t, Instant> rests_until_;
  bool has_ended_ = false;
};

}  // namespace muster::sim
