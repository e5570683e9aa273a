#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/time.h"
#include "core/engine.h"
#include "server/connection_manager.h"
#include "server/engine_driver.h"
#include "server/hello_reader.h"
#include "server/server_log.h"
#include "server/world.h"

namespace muster::server {

/// The end in order: first the sessions of others get time to go by themselves, then everybody is
/// told and gets time to hear it.
class Stopping {
 public:
  using Done = std::function<void(std::uint64_t left)>;

  Stopping(World& world, core::Engine& engine, EngineDriver& driver, ConnectionManager& connections,
           HelloReader& hellos, ServerLog& log)
      : world_(world),
        engine_(engine),
        driver_(driver),
        connections_(connections),
        hellos_(hellos),
        log_(log) {}

  bool has_begun() const { return static_cast<bool>(done_); }
  bool has_told() const { return has_told_; }

  void begin(std::string reason, Duration timeout, std::uint64_t own_sessions, Done done);
  /// Cuts the time for the sessions of others, unless it is over.
  void hasten(Duration timeout);
  /// Tells everybody now, unless they know.
  void tell(const std::string& reason, std::uint64_t own_sessions);
  /// Whether all who were to be waited for are gone, or their time is over.
  bool is_over();
  /// The sessions of others that were there when everybody was told.
  std::uint64_t left() const { return left_; }
  /// Tells who waits for the end.
  void finish(std::uint64_t left) const {
    if (done_) done_(left);
  }

 private:
  std::uint64_t users() const;

  World& world_;
  core::Engine& engine_;
  EngineDriver& driver_;
  ConnectionManager& connections_;
  HelloReader& hellos_;
  ServerLog& log_;
  std::string reason_;
  base::Instant deadline_{};
  std::uint64_t own_sessions_ = 0;
  std::uint64_t left_ = 0;
  Done done_;
  bool has_told_ = false;
};

}  // namespace muster::server
