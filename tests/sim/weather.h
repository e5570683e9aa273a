#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "process.h"

namespace muster::sim {

/// What goes wrong, as often as the plan says, until it is told to end. The oracle hears of all.
class Weather {
 public:
  struct Hands {
    std::function<std::vector<Process*>()> alive;
    std::function<void(std::uint32_t slot)> spawn;  ///< another process for a rank
  };
  Weather(Town& town, Hands hands) : town_(town), hands_(std::move(hands)) {}

  void begin();
  void end() { has_ended_ = true; }
  /// When the last thing that it did is over.
  Instant calm_at() const { return calm_at_; }

 private:
  using Strike = void (Weather::*)();

  void often(std::uint32_t per_minute, Strike strike);
  void short_cut();
  void long_cut();
  void cut_off(Process& process, Duration duration);
  void break_connection(Process& process);
  void end_at_server(Process& process);
  void stop();
  void kill();
  void report();
  void drop();
  void impersonate();
  void reload();
  void revoke();
  void pause_server();
  void kill_server();

  void disturb(Process& process, Duration duration);
  void note(const std::string& what);
  Process* anyone();
  Duration session_timeout() const { return town_.plan.options.limits.session_timeout; }
  /// So short that nobody may notice.
  Duration short_time();
  Duration long_time();
  Duration finding_out();
  void leave_unaware(Process& process);

  Town& town_;
  Hands hands_;
  Instant calm_at_{};
  bool has_ended_ = false;
};

}  // namespace muster::sim
