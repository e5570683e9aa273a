#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "server/connection_manager.h"
#include "server/door/door.h"
#include "server/engine_driver.h"
#include "server/hello_reader.h"
#include "server/server_log.h"
#include "server/world.h"

namespace muster::server {

/// Newcomers of TLS, from their first bytes until their hello can be read.
///
/// Nobody has a session of TLS before all has come that its handshake begins with, and its turn has
/// come: see Handshakes. Whoever says something else is told what this is, if he can hear it.
class Entrance {
 public:
  /// The settings outlive it; without credentials nobody comes by TLS, and nobody is asked who he
  /// is.
  Entrance(World& world, const Settings& settings, EngineDriver& driver,
           ConnectionManager& connections, ServerLog& log)
      : world_(world),
        door_(settings.door.get()),
        driver_(driver),
        connections_(connections),
        hellos_(driver, connections, log, settings),
        log_(log) {}

  /// Who reads what they say then.
  HelloReader& hellos() { return hellos_; }
  const HelloReader& hellos() const { return hellos_; }

  /// Of a newcomer without a session of TLS, which may be gone afterwards.
  void received(Newcomer& newcomer, std::string_view bytes);
  /// The handshake whose turn it is begins. Neither in a turn nor within a call of a connection.
  void shake_hands();
  /// A newcomer's connection is over in its handshake.
  void ended(Newcomer& newcomer, const std::string& detail);
  /// The credentials, if their file has changed and can be used.
  std::optional<Door::Version> look_for_credentials();
  /// Logs which certificates and credentials expire.
  void warn_of_expiry();
  /// When there may be something to do; far_future: nobody waits.
  base::Instant next_time() const { return connections_.handshakes().next_time(driver_.now()); }

 private:
  void refuse_plain(Newcomer& newcomer);
  void refuse_failed(Newcomer& newcomer, const std::string& why);
  void make_place();

  World& world_;
  Door* const door_;
  EngineDriver& driver_;
  ConnectionManager& connections_;
  HelloReader hellos_;
  ServerLog& log_;
};

}  // namespace muster::server
