#pragma once

#include <cstdint>

#include "base/time.h"
#include "net/loop.h"

namespace muster::server {

/// What the service needs of the world beside its connections: time, and turns. An I/O thread's
/// loop has both (service_host.h); scripts have a world of their own.
class World {
 public:
  World() = default;
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  virtual base::Instant now() const = 0;
  /// How long this thread has had a processor, since some point in time.
  virtual Duration worked() const = 0;
  /// Of the thread that serves.
  virtual net::TurnStats turn_stats() const = 0;
  /// The number of the loop's turn, from 1.
  virtual std::uint64_t turn() const = 0;
  /// `Service::tick` is called at `when`, once, instead of when it was to be called before;
  /// far_future: it is not called.
  virtual void wake_at(base::Instant when) = 0;
  /// `Service::continue_turn` is called after everybody else has had a turn, once.
  virtual void wake_soon() = 0;

  /// Of the connections; null: there is none, and nobody comes by TLS.
  virtual net::Loop* loop() { return nullptr; }

  /// For ever: newcomers are refused by the system.
  virtual void stop_listening() = 0;
};

}  // namespace muster::server
