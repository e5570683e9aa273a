#pragma once

#include <string>
#include <string_view>

#include "server/connection_manager.h"
#include "server/engine_driver.h"
#include "server/server_log.h"

namespace muster::server {

/// The hello of newcomers: it is collected in a buffer of fixed size, and the engine answers it.
/// Who says something else, or nothing, is told why it is refused.
class HelloReader {
 public:
  HelloReader(EngineDriver& driver, ConnectionManager& connections, ServerLog& log,
              const core::Options& options)
      : driver_(driver), connections_(connections), log_(log), options_(options) {}

  /// Bytes of a peer that has not said its hello.
  ///
  /// returns  what is behind the hello
  std::string_view received(Peer& peer, std::string_view bytes);
  void refuse_overdue();
  void refuse(Peer& peer, const Error& why);
  /// The bytes by which a newcomer is refused.
  std::string refusal(ErrorCode code, const std::string& detail) const;

 private:
  void complete(Peer& peer);

  EngineDriver& driver_;
  ConnectionManager& connections_;
  ServerLog& log_;
  const core::Options& options_;
};

}  // namespace muster::server
