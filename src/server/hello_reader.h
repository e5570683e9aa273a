#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/connection_manager.h"
#include "server/door/door.h"
#include "server/engine_driver.h"
#include "server/server_log.h"
#include "server/settings.h"
#include "server/token_source.h"

namespace muster::server {

/// The hello of newcomers: the engine answers it when it is there as a whole. Who says something
/// else, or nothing, is told why it is refused.
class HelloReader {
 public:
  /// The settings outlive it.
  HelloReader(EngineDriver& driver, ConnectionManager& connections, ServerLog& log,
              const Settings& settings)
      : driver_(driver),
        connections_(connections),
        log_(log),
        options_(settings.core),
        door_(settings.door.get()),
        tcpstore_(settings.tcpstore) {}

  struct Read {
    Peer* peer = nullptr;   ///< what the newcomer has become; null: none yet, or it is gone
    std::string_view rest;  ///< that is behind the hello
  };
  /// Bytes of a newcomer, which may be gone afterwards.
  Read received(Newcomer& newcomer, std::string_view bytes);
  /// A newcomer that says no hello: it speaks TCPStore's protocol. The peer may be gone, since the
  /// engine may not let it in; null: the newcomer is.
  Peer* receive_guest(Newcomer& newcomer);
  /// Those whose time is over, so many of them at once. Guests may say nothing.
  void judge_overdue();
  void refuse(Newcomer& newcomer, const Error& why);
  /// The same of one who has begun with these bytes, which are no hello.
  void refuse_speaker(Newcomer& newcomer, std::string_view greeting, const Error& why);
  /// For the operator alone: which step has failed.
  void log_not_admitted(const Newcomer& newcomer, const std::string& why);
  /// Makes room for another newcomer: one goes, at once.
  ///
  /// returns  false: there is none
  bool turn_one_out();
  /// The bytes by which a newcomer is refused.
  std::string refusal(ErrorCode code, const std::string& detail) const;

 private:
  Peer* complete(Newcomer& newcomer, std::string_view bytes);
  std::optional<Visitor> admit(Newcomer& newcomer, const wire::ClientHello& hello);
  void log_admitted(const Newcomer& newcomer, const Visitor& visitor, wire::Role role);
  bool is_one_too_many(const Visitor& visitor, const wire::ClientHello& hello);
  void log_refused(const Newcomer& newcomer, const std::string& why);
  void send_refusal(Newcomer& newcomer, const Error& why);

  EngineDriver& driver_;
  ConnectionManager& connections_;
  ServerLog& log_;
  const core::Options& options_;
  Door* const door_;
  const std::vector<tcpstore::Port>& tcpstore_;
  TokenSource tokens_;
};

}  // namespace muster::server
